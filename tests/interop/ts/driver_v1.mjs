// The official TypeScript client, version 1: the revisions with a handshake.
import { load } from './packages.mjs';
import { CAPABILITIES } from './person.mjs';
import { main } from './scenarios.mjs';

const { Client } = load('@modelcontextprotocol/sdk/client/index.js');
const { StdioClientTransport } = load('@modelcontextprotocol/sdk/client/stdio.js');
const { StreamableHTTPClientTransport } = load(
    '@modelcontextprotocol/sdk/client/streamableHttp.js',
);
const {
    CallToolResultSchema,
    CreateMessageRequestSchema,
    ElicitRequestSchema,
    ListRootsRequestSchema,
    LoggingMessageNotificationSchema,
    McpError,
    PromptListChangedNotificationSchema,
    ResourceListChangedNotificationSchema,
    ResourceUpdatedNotificationSchema,
    ResultSchema,
    ToolListChangedNotificationSchema,
} = load('@modelcontextprotocol/sdk/types.js');

// It has no option for the version: it always offers the latest that it knows.
function offering(transport, version, negotiated) {
    const send = transport.send.bind(transport);
    transport.send = (message, options) => {
        if (message.method === 'initialize') message.params.protocolVersion = version;
        return send(message, options);
    };
    const told = transport.setProtocolVersion?.bind(transport);
    transport.setProtocolVersion = (version) => {
        negotiated(version);
        told?.(version);
    };
    return transport;
}

async function connect({ version, url, answers = true }, parameters, hooks) {
    const client = new Client(
        { name: 'typescript-1', version: '1.32.2' },
        { capabilities: answers ? CAPABILITIES : {} },
    );
    const { person } = hooks;
    if (answers) {
        client.setRequestHandler(ElicitRequestSchema, (request, extra) =>
            person.elicit(request, extra.signal),
        );
        client.setRequestHandler(CreateMessageRequestSchema, (request) => person.sample(request));
        client.setRequestHandler(ListRootsRequestSchema, (request) => person.roots(request));
    }
    const notice = ({ method, params }) =>
        hooks.notices.push(params?.uri ? [method, params.uri] : [method]);
    client.setNotificationHandler(PromptListChangedNotificationSchema, notice);
    client.setNotificationHandler(ResourceListChangedNotificationSchema, notice);
    client.setNotificationHandler(ResourceUpdatedNotificationSchema, notice);
    client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => {
        hooks.logs.push(params);
    });
    client.setNotificationHandler(ToolListChangedNotificationSchema, (notification) => {
        hooks.changed.push();
        notice(notification);
    });
    const transport = url
        ? new StreamableHTTPClientTransport(new URL(url))
        : new StdioClientTransport(parameters);
    let negotiated;
    await client.connect(offering(transport, version, (version) => (negotiated = version)));
    return {
        handshake: () => ({
            version: negotiated,
            server: client.getServerVersion() ?? null,
            capabilities: client.getServerCapabilities(),
            instructions: client.getInstructions() ?? null,
        }),
        alive: () => client.ping(),
        list: async () => {
            const tools = [];
            let pages = 0;
            let cursor;
            do {
                const page = await client.listTools(cursor === undefined ? {} : { cursor });
                tools.push(...page.tools);
                cursor = page.nextCursor;
                pages += 1;
            } while (cursor !== undefined);
            return { tools, pages };
        },
        call: (params, how) => client.callTool(params, CallToolResultSchema, how),
        request: (method) => client.request({ method, params: {} }, ResultSchema),
        level: async (level) => {
            await client.setLoggingLevel(level);
            return {};
        },
        listen: () => undefined,
        close: async () => {
            await transport.terminateSession?.();
            await client.close();
        },
        client,
    };
}

await main({ connect, peerError: (error) => error instanceof McpError });
