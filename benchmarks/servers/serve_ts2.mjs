// The server of the benchmarks, in version 2 of the official TypeScript SDK.
import { McpServer } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import * as z from 'zod/v4';
import { DESCRIPTION, echo, fields, names } from './bench_tool.mjs';

function build() {
    const server = new McpServer({ name: 'bench', version: '1' });
    const inputSchema = z.object(fields(z));
    for (const name of names(Number(process.argv[2]))) {
        server.registerTool(name, { description: DESCRIPTION, inputSchema }, echo);
    }
    return server;
}

void serveStdio(build);
