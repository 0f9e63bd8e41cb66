// The server of the benchmarks, in version 1 of the official TypeScript SDK.
import { McpServer } from '@modelcontextprotocol/sdk/server/mcp.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import * as z from 'zod/v4';
import { DESCRIPTION, echo, fields, names } from './bench_tool.mjs';

const server = new McpServer({ name: 'bench', version: '1' });
for (const name of names(Number(process.argv[2]))) {
    server.registerTool(name, { description: DESCRIPTION, inputSchema: fields(z) }, echo);
}
await server.connect(new StdioServerTransport());
