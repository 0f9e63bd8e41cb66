// Finds the packages in the folder that NOIZU_MCP_NODE_MODULES names, else beside this file.
// An ESM import would look only beside the importing file, so they are required from there.
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const folder = process.env.NOIZU_MCP_NODE_MODULES ?? join(here, 'node_modules');

export const load = createRequire(join(dirname(folder), 'resolve.cjs'));
