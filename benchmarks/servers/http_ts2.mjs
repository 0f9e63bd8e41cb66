// The server of the benchmarks over HTTP, in version 2 of the official TypeScript SDK: a server for each
// session with a handshake; for 2026-07-28 its handler, which builds a server for each request.
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import { NodeStreamableHTTPServerTransport, toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, McpServer } from '@modelcontextprotocol/server';
import * as z from 'zod/v4';
import { DESCRIPTION, echo, fields, names } from './bench_tool.mjs';

const [port, tools, ...flags] = process.argv.slice(2);
const joined = new Set();
const sessions = new Map();
const text = (text) => ({ content: [{ type: 'text', text }] });

function build() {
    const server = new McpServer(
        { name: 'bench', version: '1' },
        { capabilities: { tools: { listChanged: true } } },
    );
    const inputSchema = z.object(fields(z));
    for (const name of names(Number(tools))) {
        server.registerTool(name, { description: DESCRIPTION, inputSchema }, echo);
    }
    if (flags.includes('notices')) {
        server.registerTool('join', {}, async () => {
            joined.add(server);
            return text('joined');
        });
        server.registerTool('bump', {}, async () => {
            handler.notify.toolsChanged();
            for (const each of joined) each.sendToolListChanged();
            return text('bumped');
        });
    }
    return server;
}

async function begin() {
    const transport = new NodeStreamableHTTPServerTransport({
        sessionIdGenerator: () => randomUUID(),
        onsessioninitialized: (id) => sessions.set(id, transport),
    });
    await build().connect(transport);
    return transport;
}

const handler = createMcpHandler(build);
const stateless = toNodeHandler(handler);
createServer(async (request, response) => {
    if (request.headers['mcp-protocol-version'] === '2026-07-28') return stateless(request, response);
    const id = request.headers['mcp-session-id'];
    const transport = id ? sessions.get(id) : await begin();
    if (!transport) return response.writeHead(404).end();
    await transport.handleRequest(request, response);
}).listen(Number(port), '127.0.0.1');
