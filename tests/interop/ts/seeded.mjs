// A server with one fault: `node seeded.mjs FAULT`, on version 2 of the official TypeScript package,
// or `node seeded.mjs FAULT 1` on version 1. The fuzzer is to find the fault.
import { load } from './packages.mjs';

const [fault, version = '2'] = process.argv.slice(2);
const STATELESS = '2026-07-28';
const VERSION_KEY = 'io.modelcontextprotocol/protocolVersion';

const text = (words) => ({ content: [{ type: 'text', text: words }] });
const tool = (name, properties, required, more = {}) => ({
    name,
    description: `The tool ${name}.`,
    inputSchema: { type: 'object', properties, required, additionalProperties: false },
    annotations: { readOnlyHint: true },
    ...more,
});
const TITLE = { title: { type: 'string', minLength: 1, maxLength: 20 } };
const tools = [
    tool(
        'add',
        {
            numbers: { type: 'array', items: { type: 'integer' }, maxItems: 4 },
            times: { type: 'integer', minimum: 1, maximum: 10 },
        },
        ['numbers', 'times'],
        {
            outputSchema: {
                type: 'object',
                properties: { sum: { type: 'integer' } },
                required: ['sum'],
            },
        },
    ),
    tool(
        'say',
        { text: { type: 'string' }, tone: { type: 'string', enum: ['calm', 'loud'] } },
        ['text'],
    ),
    ...['keep_note', 'drop_note', 'read_note'].map((name) =>
        tool(name, TITLE, ['title'], { annotations: { destructiveHint: false } }),
    ),
];
if (fault === 'cancel') tools.push(tool('wait', {}, []));

const notes = new Map();
let isDoubled = false;

class Refusal extends Error {
    code = -32602;
}

function fits(schema, value) {
    switch (schema.type) {
        case 'array':
            return (
                Array.isArray(value) &&
                value.every((each) => fits(schema.items, each)) &&
                (fault === 'max-items' || value.length <= schema.maxItems)
            );
        case 'integer':
            return (
                Number.isInteger(value) &&
                value >= (schema.minimum ?? value) &&
                value <= (schema.maximum ?? value) + (fault === 'bound' ? 1 : 0)
            );
        default: {
            if (typeof value !== 'string') return false;
            if (schema.enum && fault !== 'enum' && !schema.enum.includes(value)) return false;
            const length = [...value].length;
            return length >= (schema.minLength ?? 0) && length <= (schema.maxLength ?? length);
        }
    }
}

function check(name, args) {
    const found = tools.find((each) => each.name === name);
    if (!found) throw new Refusal('no such tool');
    const { properties, required } = found.inputSchema;
    const known = Object.entries(args).every(
        ([key, value]) => Object.hasOwn(properties, key) && fits(properties[key], value),
    );
    if (!known || !required.every((key) => Object.hasOwn(args, key))) {
        throw new Refusal('the arguments do not fit');
    }
}

const handlers = {
    add({ numbers, times }, isStateless) {
        let sum = numbers.reduce((total, each) => total + each, 0) * times;
        if (!Number.isFinite(sum)) throw new Refusal('the sum is too large');
        if (fault === 'eras' && isStateless && times > 5) sum += 1;
        if (fault === 'output' && numbers.length === 3) sum = String(sum);
        return { ...text(JSON.stringify({ sum })), structuredContent: { sum } };
    },

    say({ text: words, tone }) {
        if (fault === 'crash' && words[0].length > 1) return text('long');
        if (fault === 'leak') {
            try {
                return text(words[0].toUpperCase());
            } catch (error) {
                return { ...text(error.stack), isError: true };
            }
        }
        if (fault === 'hang' && /[\u{10000}-\u{10ffff}]/u.test(words)) return new Promise(() => {});
        if (fault === 'exit' && words.includes('\0')) process.exit(3);
        isDoubled = fault === 'twice';
        return text(tone === 'loud' ? words.toUpperCase() : words);
    },

    keep_note({ title }) {
        notes.set(title, title);
        const place = tools.findIndex((each) => each.name === 'read_note');
        if (fault === 'notice' && title.length > 3 && place >= 0) tools.splice(place, 1);
        return text('kept');
    },

    drop_note({ title }) {
        if (fault === 'sequence' && notes.has(title)) notes.set(title, null);
        else notes.delete(title);
        return text('dropped');
    },

    read_note({ title }) {
        if (!notes.has(title)) throw new Refusal('no such note');
        return text(notes.get(title).toUpperCase());
    },

    wait() {
        // The fault: nothing else is read meanwhile, a cancellation neither.
        const end = Date.now() + 400;
        while (Date.now() < end);
        return text('done');
    },
};

function listTools({ params }) {
    const cursor = params?.cursor;
    if (cursor !== undefined && (fault !== 'cursors' || cursor !== 'more')) {
        throw new Refusal('no such cursor');
    }
    if (fault === 'cursors') return { tools: tools.slice(0, 1), nextCursor: 'more' };
    return { tools: fault === 'order' ? tools.toSorted(() => Math.random() - 0.5) : tools };
}

function callTool({ params }, isStateless) {
    const { name, arguments: args = {} } = params;
    check(name, args);
    return handlers[name](args, isStateless);
}

const write = process.stdout.write.bind(process.stdout);
process.stdout.write = (line, ...more) => {
    if (isDoubled && String(line).includes('"result"')) write(line);
    isDoubled = false;
    return write(line, ...more);
};

const INFO = { name: 'seeded', version: '1' };
const OPTIONS = { capabilities: { tools: { listChanged: true } } };
if (version === '2') {
    const { Server } = load('@modelcontextprotocol/server');
    const { serveStdio } = load('@modelcontextprotocol/server/stdio');
    serveStdio(() => {
        const server = new Server(INFO, OPTIONS);
        server.setRequestHandler('tools/list', listTools);
        server.setRequestHandler('tools/call', (request, context) =>
            callTool(request, context.mcpReq.envelope?.[VERSION_KEY] === STATELESS),
        );
        return server;
    });
} else {
    const { Server } = load('@modelcontextprotocol/sdk/server/index.js');
    const { StdioServerTransport } = load('@modelcontextprotocol/sdk/server/stdio.js');
    const types = load('@modelcontextprotocol/sdk/types.js');
    const server = new Server(INFO, OPTIONS);
    server.setRequestHandler(types.ListToolsRequestSchema, listTools);
    server.setRequestHandler(types.CallToolRequestSchema, (request) => callTool(request, false));
    await server.connect(new StdioServerTransport());
}
