// A server written with the official TypeScript package, version 1, for our client to drive.
import { load } from './packages.mjs';
import { register } from './tools.mjs';

const { McpServer } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');

const server = new McpServer(
    { name: 'foreign', version: '1.32.2' },
    { instructions: 'Call anything.', capabilities: { logging: {}, tools: { listChanged: true } } },
);
register(server, {
    notify: (context, notification) => context.sendNotification(notification),
    token: (context) => context._meta?.progressToken,
    signal: (context) => context.signal,
});

// Serve one session on a free port, and print it.
async function serveHttp() {
    const { createServer } = await import('node:http');
    const { randomUUID } = await import('node:crypto');
    const { StreamableHTTPServerTransport } = load(
        '@modelcontextprotocol/sdk/server/streamableHttp.js',
    );
    const transport = new StreamableHTTPServerTransport({ sessionIdGenerator: randomUUID });
    await server.connect(transport);
    const listener = createServer((request, response) => transport.handleRequest(request, response));
    listener.listen(0, '127.0.0.1', () => console.log(listener.address().port));
}

if (process.argv[2] === 'http') await serveHttp();
else await server.connect(new StdioServerTransport());
