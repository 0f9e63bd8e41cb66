// The official TypeScript client, version 2: all revisions, by negotiation or pinned.
import { load } from './packages.mjs';
import { CAPABILITIES } from './person.mjs';
import { main } from './scenarios.mjs';

const { Client, ProtocolError, LOG_LEVEL_META_KEY, StreamableHTTPClientTransport } = load(
    '@modelcontextprotocol/client',
);
const { StdioClientTransport } = load('@modelcontextprotocol/client/stdio');

const options = {
    handshake: (version) => ({ supportedProtocolVersions: [version, '2025-11-25'] }),
    pin: (version) => ({ versionNegotiation: { mode: { pin: version } } }),
    auto: () => ({ versionNegotiation: { mode: 'auto' } }),
};

// What any result may be: the library wants a validator, the tests look at the wire.
const anything = { '~standard': { version: 1, vendor: 'tests', validate: (value) => ({ value }) } };

async function connect({ kind, version, url, answers = true }, parameters, hooks) {
    const client = new Client(
        { name: 'typescript-2', version: '2.4.0' },
        { ...options[kind](version), capabilities: answers ? CAPABILITIES : {} },
    );
    const { person } = hooks;
    if (answers) {
        client.setRequestHandler('elicitation/create', (request, context) =>
            person.elicit(request, context.mcpReq.signal),
        );
        client.setRequestHandler('sampling/createMessage', (request) => person.sample(request));
        client.setRequestHandler('roots/list', (request) => person.roots(request));
    }
    for (const kind of ['prompts/list_changed', 'resources/list_changed']) {
        const method = `notifications/${kind}`;
        client.setNotificationHandler(method, () => hooks.notices.push([method]));
    }
    client.setNotificationHandler('notifications/resources/updated', ({ method, params }) =>
        hooks.notices.push([method, params.uri]),
    );
    client.setNotificationHandler('notifications/message', ({ params }) => {
        hooks.logs.push(params);
    });
    client.setNotificationHandler('notifications/tools/list_changed', ({ method }) => {
        hooks.changed.push();
        hooks.notices.push([method]);
    });
    const transport = url
        ? new StreamableHTTPClientTransport(new URL(url))
        : new StdioClientTransport(parameters);
    await client.connect(transport);
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
        listen: (filter) => (modern ? client.listen(filter) : undefined),
        tamper: async (name) => {
            const manually = { allowInputRequired: true };
            const first = await client.callTool({ name, arguments: {} }, manually);
            const inputResponses = {};
            for (const [key, request] of Object.entries(first.inputRequests)) {
                inputResponses[key] = await person.elicit(request);
            }
            const requestState = `${first.requestState}x`;
            return await client.callTool({ name, arguments: {}, inputResponses, requestState });
        },
        close: async () => {
            if (!modern) await transport.terminateSession?.();
            await client.close();
        },
        client,
    };

    function firstPage() {
        return client.request({ method: 'tools/list', params: {} });
    }
}

await main({ connect, peerError: (error) => error instanceof ProtocolError });
