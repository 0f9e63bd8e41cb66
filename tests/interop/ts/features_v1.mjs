// A server written with version 1 of the official TypeScript package that asks, and has resources
// and prompts.
import { PAGE, QUESTIONS, register, summary, text } from './features.mjs';
import { load } from './packages.mjs';

const { McpServer, ResourceTemplate } = load('@modelcontextprotocol/sdk/server/mcp.js');
const { completable } = load('@modelcontextprotocol/sdk/server/completable.js');
const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');
const { SubscribeRequestSchema, UnsubscribeRequestSchema } = load(
    '@modelcontextprotocol/sdk/types.js',
);

const server = new McpServer(
    { name: 'foreign', version: '1.32.2' },
    { capabilities: { resources: { subscribe: true, listChanged: true } } },
);

async function askEverything({ signal }) {
    const answers = await Promise.all([
        server.server.elicitInput(QUESTIONS.person, { signal }),
        server.server.createMessage(QUESTIONS.thought, { signal }),
        server.server.listRoots({}, { signal }),
    ]);
    return summary(...answers);
}

async function askPage() {
    const params = { mode: 'url', message: 'Sign in', url: PAGE, elicitationId: 'id-1' };
    return text((await server.server.elicitInput(params)).action);
}

for (const schema of [SubscribeRequestSchema, UnsubscribeRequestSchema]) {
    server.server.setRequestHandler(schema, () => ({}));
}
const shape = (fields) => fields;
register(server, { ResourceTemplate, completable, shape, askEverything, askPage });
await server.connect(new StdioServerTransport());
