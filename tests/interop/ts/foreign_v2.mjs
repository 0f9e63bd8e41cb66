// A server written with the official TypeScript package, version 2, for our client to drive.
import { load } from './packages.mjs';
import { register } from './tools.mjs';

const { createMcpHandler, McpServer } = load('@modelcontextprotocol/server');
const { serveStdio } = load('@modelcontextprotocol/server/stdio');

let handler;

function build() {
    const server = new McpServer(
        { name: 'foreign', version: '2.4.0' },
        { instructions: 'Call anything.', capabilities: { logging: {}, tools: { listChanged: true } } },
    );
    register(server, {
        notify: (context, notification) => context.mcpReq.notify(notification),
        token: (context) => context.mcpReq._meta?.progressToken,
        signal: (context) => context.mcpReq.signal,
        changed: () => handler?.notify.toolsChanged(),
    });
    return server;
}

// Serve one session, and requests of 2026-07-28, on a free port, and print it.
async function serveHttp() {
    const { createServer } = await import('node:http');
    const { randomUUID } = await import('node:crypto');
    const { NodeStreamableHTTPServerTransport, toNodeHandler } = load('@modelcontextprotocol/node');
    handler = createMcpHandler(build);
    const stateless = toNodeHandler(handler);
    const transport = new NodeStreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
    await build().connect(transport);
    const listener = createServer((request, response) =>
        request.headers['mcp-protocol-version'] === '2026-07-28'
            ? stateless(request, response)
            : transport.handleRequest(request, response),
    );
    listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
}

if (process.argv[2] === 'http') await serveHttp();
else serveStdio(build);
