// The official TypeScript client, version 2: all revisions, by negotiation or pinned.
import { load } from './packages.mjs';
import { main } from './scenarios.mjs';

const { Client, ProtocolError, LOG_LEVEL_META_KEY } = load('@modelcontextprotocol/client');
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const options = {
    handshake: (version) => ({ supportedProtocolVersions: [version, '2025-11-25'] }),
    pin: (version) => ({ versionNegotiation: { mode: { pin: version } } }),
    auto: () => ({ versionNegotiation: { mode: 'auto' } }),
};

// What any result may be: the library wants a validator, the tests look at the wire.
const anything = { '~standard': { version: 1, vendor: 'tests', validate: (value) => ({ value }) } };

async function connect({ kind, version }, parameters, hooks) {
    const client = new Client({ name: 'typescript-2', version: '2.4.0' }, options[kind](version));
    client.setNotificationHandler('notifications/message', ({ params }) => {
        hooks.logs.push(params);
    });
    client.setNotificationHandler('notifications/tools/list_changed', () => hooks.changed.push());
    await client.connect(new StdioClientTransport(parameters));
    const modern = client.getProtocolEra() === 'modern';
    return {
        handshake: () => ({
            version: client.getNegotiatedProtocolVersion(),
            server: client.getServerVersion() ?? null,
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions() ?? null,
        }),
        alive: () => (modern ? client.discover() : client.ping()),
        list: async () => {
            const tools = [];
            let pages = 0;
            let cursor;
            do {
                // Without a cursor the client walks all pages itself; null is no cursor to it.
                const page = cursor === undefined ? await firstPage() : await client.listTools({ cursor });
                tools.push(...page.tools);
                cursor = page.nextCursor;
                pages += 1;
            } while (cursor !== undefined);
            const { tools: walked } = await client.listTools();
            if (JSON.stringify(walked) !== JSON.stringify(tools)) {
                throw new Error('the walk of the client found other tools');
            }
            return { tools, pages };
        },
        call: (params, how) => client.callTool(params, how),
        request: (method) => client.request({ method, params: {} }, anything),
        level: async (level) => {
            if (modern) return { _meta: { [LOG_LEVEL_META_KEY]: level } };
            await client.setLoggingLevel(level);
            return {};
        },
        listen: () => (modern ? client.listen({ toolsListChanged: true }) : undefined),
        close: () => client.close(),
    };

    function firstPage() {
        return client.request({ method: 'tools/list', params: {} });
    }
}

await main({ connect, peerError: (error) => error instanceof ProtocolError });
