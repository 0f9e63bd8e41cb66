// A server written with the official TypeScript package, version 2, for our client to drive.
import { load } from './packages.mjs';
import { register } from './tools.mjs';

const { McpServer } = load('@modelcontextprotocol/server');
const { serveStdio } = load('@modelcontextprotocol/server/stdio');

serveStdio(() => {
    const server = new McpServer(
        { name: 'foreign', version: '2.4.0' },
        { instructions: 'Call anything.', capabilities: { logging: {}, tools: { listChanged: true } } },
    );
    register(server, {
        notify: (context, notification) => context.mcpReq.notify(notification),
        token: (context) => context.mcpReq._meta?.progressToken,
        signal: (context) => context.mcpReq.signal,
    });
    return server;
});
