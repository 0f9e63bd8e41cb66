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
await server.connect(new StdioServerTransport());
