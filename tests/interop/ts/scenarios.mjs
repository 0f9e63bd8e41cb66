// Runs scenarios with one client library, and prints what was seen as JSON.
//
// The first argument is a JSON array of connections, each with `label`, `kind`, `version`,
// `command`, `journal` and `scenarios`, as the fixture `drive` gets them. What differs between the
// libraries is in their `connect(connection, parameters, hooks)`, which returns `handshake()`,
// `alive()`, `list()`, `call(params, options)`, `request(method)`, `level(level)`, `listen()` and
// `close()`.

const PATIENCE = 20_000;

// A queue of events that can be waited for.
class Events {
    #arrived = 0;
    #waiting = [];

    push() {
        const resolve = this.#waiting.shift();
        if (resolve) resolve();
        else this.#arrived += 1;
    }

    async next() {
        if (this.#arrived > 0) this.#arrived -= 1;
        else await new Promise((resolve) => this.#waiting.push(resolve));
    }
}

const kinds = {
    handshake: (client) => client.handshake(),
    alive: (client) => client.alive(),
    list: (client) => client.list(),
    call: (client, { tool, arguments: args = {} }) => client.call({ name: tool, arguments: args }),
    unknown_method: (client) => client.request('no/such'),

    async progress(client, { tool, arguments: args, then }) {
        const seen = [];
        let further;
        const onprogress = ({ progress, total = null, message = null }) => {
            seen.push([progress, total, message]);
            if (seen.length === args.count) further = client.call({ name: then, arguments: {} });
        };
        const result = await client.call({ name: tool, arguments: args }, { onprogress });
        await further;
        return { result, seen };
    },

    async logging(client, { tool }) {
        const meta = await client.level('warning');
        const result = await client.call({ name: tool, arguments: {}, ...meta });
        return { result, seen: client.hooks.logs };
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
        const subscription = await client.listen();
        for (const step of ['add', 'remove']) {
            await kinds.call(client, scenario[step]);
            await client.hooks.changed.next();
            report[step] = (await client.list()).tools.map((tool) => tool.name);
        }
        await subscription?.close();
        return report;
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
        const [command, ...args] = connection.command;
        const env = { ...process.env, INTEROP_JOURNAL: connection.journal };
        try {
            const hooks = { logs: [], changed: new Events() };
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
