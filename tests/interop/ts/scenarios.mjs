// Runs scenarios with one client library, and prints what was seen as JSON.
//
// The first argument is a JSON array of connections, each with `label`, `kind`, `version`,
// `command` or `url`, `journal` and `scenarios`, as the fixture `drive` gets them. What differs between the
// libraries is in their `connect(connection, parameters, hooks)`, which returns `handshake()`,
// `alive()`, `list()`, `call(params, options)`, `request(method)`, `level(level)`,
// `listen(filter)`, `close()`, the `client` itself with the methods that both libraries have, and
// `tamper(tool)` where the library can.
import { Person } from './person.mjs';

const PATIENCE = 60_000;
// What a filter for notifications lets through.
const METHODS = {
    toolsListChanged: 'notifications/tools/list_changed',
    promptsListChanged: 'notifications/prompts/list_changed',
    resourcesListChanged: 'notifications/resources/list_changed',
    resourceSubscriptions: 'notifications/resources/updated',
};

// A queue of events that can be waited for.
class Events {
    #arrived = [];
    #waiting = [];

    push(value) {
        const resolve = this.#waiting.shift();
        if (resolve) resolve(value);
        else this.#arrived.push(value);
    }

    async next() {
        if (this.#arrived.length > 0) return this.#arrived.shift();
        return await new Promise((resolve) => this.#waiting.push(resolve));
    }
}

const kinds = {
    handshake: (client) => client.handshake(),
    alive: (client) => client.alive(),
    list: (client) => client.list(),
    call: (client, { tool, arguments: args = {} }) => client.call({ name: tool, arguments: args }),
    unknown_method: (client) => client.request('no/such'),

    async progress(client, { tool, arguments: args = {}, then }) {
        const seen = [];
        let further;
        const onprogress = ({ progress, total = null, message = null }) => {
            seen.push([progress, total, message]);
            if (then && seen.length === args.count) further = client.call({ name: then, arguments: {} });
        };
        const result = await client.call({ name: tool, arguments: args }, { onprogress });
        await further;
        return { result, seen };
    },

    async logging(client, { tool, arguments: args = {}, level = 'warning' }) {
        const meta = await client.level(level);
        const before = client.hooks.logs.length;
        const result = await client.call({ name: tool, arguments: args, ...meta });
        return { result, seen: client.hooks.logs.slice(before) };
    },

    async cancel(client, { tool, after }) {
        const control = new AbortController();
        const onprogress = () => control.abort('enough');
        const call = client.call({ name: tool, arguments: {} }, { onprogress, signal: control.signal });
        const cancelled = await call.then(() => false, () => control.signal.aborted);
        return { cancelled, after: await client.call({ name: after, arguments: {} }) };
    },

    async abandon(client, { tool }) {
        await new Promise((onprogress) => {
            const call = client.call({ name: tool, arguments: {} }, { onprogress });
            call.catch(() => {}); // it says that the connection was closed
        });
        return true;
    },

    concurrent(client, { tool, count }) {
        const one = (_, number) => client.call({ name: tool, arguments: { number, of: count } });
        return Promise.all(Array.from({ length: count }, one));
    },

    async changes(client, scenario) {
        const report = {};
        const subscription = await client.listen({ toolsListChanged: true });
        for (const step of ['add', 'remove']) {
            await kinds.call(client, scenario[step]);
            await client.hooks.changed.next();
            report[step] = (await client.list()).tools.map((tool) => tool.name);
        }
        await subscription?.close();
        return report;
    },

    async resources({ client }) {
        const { resources } = await client.listResources();
        const { resourceTemplates: templates } = await client.listResourceTemplates();
        return { resources, templates };
    },

    read: ({ client }, { uri }) => client.readResource({ uri }),
    prompts: async ({ client }) => (await client.listPrompts()).prompts,

    prompt: ({ client }, { prompt: name, arguments: args }) =>
        client.getPrompt({ name, arguments: args }),

    async complete({ client }, { ref, argument, context }) {
        const more = context ? { context: { arguments: context } } : {};
        return (await client.complete({ ref, argument, ...more })).completion;
    },

    async ask(client, { mood, what }) {
        const { person } = client.hooks;
        Object.assign(person, { mood, asked: [] });
        const result = await kinds[what.kind](client, what);
        return { result, asked: [...person.asked] };
    },

    async give_up(client, { tool, after }) {
        const { person } = client.hooks;
        person.mood = 'never';
        const control = new AbortController();
        const call = client.call({ name: tool, arguments: {} }, { signal: control.signal });
        call.catch(() => {}); // it says that it was aborted
        await person.called;
        control.abort('enough');
        await person.dismissed;
        return await client.call({ name: after, arguments: {} });
    },

    tamper: (client, { tool }) => client.tamper(tool),

    async notices(client, { listen, tool, arguments: args = {} }) {
        const watched = listen.resourceSubscriptions ?? [];
        const subscription = await client.listen(listen);
        if (!subscription) for (const uri of watched) await client.client.subscribeResource({ uri });
        await client.call({ name: tool, arguments: args });
        // What an earlier scenario changed may be told of late.
        const wanted = Object.keys(listen).map((key) => METHODS[key]);
        let notice;
        do notice = await client.hooks.notices.next();
        while (!wanted.includes(notice[0]));
        if (!subscription) for (const uri of watched) await client.client.unsubscribeResource({ uri });
        await subscription?.close();
        // A notice of it would be the first that a later scenario gets.
        if (watched.length > 0) await client.call({ name: tool, arguments: args });
        return { agreed: subscription?.honoredFilter, notice };
    },
};

// A promise that fails in time.
function bounded(work, milliseconds) {
    let timer;
    const late = new Promise((_, reject) => {
        timer = setTimeout(() => reject(new Error(`no end after ${milliseconds} ms`)), milliseconds);
    });
    return Promise.race([work, late]).finally(() => clearTimeout(timer));
}

// An error of the peer is a value, any other one a failure.
async function attempt(client, scenario, peerError) {
    try {
        return (await bounded(kinds[scenario.kind](client, scenario), PATIENCE)) ?? null;
    } catch (error) {
        if (peerError(error)) {
            return { error: { code: error.code, message: error.message, data: error.data ?? null } };
        }
        return { failed: error?.stack ?? String(error) };
    }
}

export async function main({ connect, peerError }) {
    const report = {};
    for (const connection of JSON.parse(process.argv[2])) {
        const found = (report[connection.label] = {});
        const [command, ...args] = connection.command ?? [];
        const env = { ...process.env, INTEROP_JOURNAL: connection.journal };
        try {
            const hooks = {
                logs: [],
                changed: new Events(),
                notices: new Events(),
                person: new Person(),
            };
            const client = await bounded(connect(connection, { command, args, env }, hooks), PATIENCE);
            client.hooks = hooks;
            for (const scenario of connection.scenarios) {
                found[scenario.name] = await attempt(client, scenario, peerError);
            }
            await bounded(client.close(), PATIENCE);
        } catch (error) {
            found.connection = { failed: error?.stack ?? String(error) };
        }
    }
    process.stdout.write(JSON.stringify(report), () => process.exit(0));
}
