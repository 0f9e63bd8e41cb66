// The tools of the foreign servers. What differs between the packages is in `of`: how a handler
// sends a notification, and how it finds its progress token and its abort signal.
import { load } from './packages.mjs';

const { z } = load('zod');

const text = (words) => ({ content: [{ type: 'text', text: words }] });

// Of the program: over HTTP version 2 of the package makes a server for each request of 2026-07-28.
let hasExtra = false;
let wasCancelled;
const cancelled = new Promise((resolve) => (wasCancelled = resolve));

export function register(server, of) {
    const addExtra = () =>
        server.registerTool('extra', { description: 'A new tool.' }, () => text('extra'));
    if (hasExtra) addExtra();

    const progress = (context, progress, more = {}) =>
        of.notify(context, {
            method: 'notifications/progress',
            params: { progressToken: of.token(context), progress, ...more },
        });

    server.registerTool(
        'echo',
        {
            description: 'Answer with the text that came.',
            inputSchema: z.object({ message: z.string().min(1) }),
        },
        ({ message }) => text(message),
    );

    server.registerTool(
        'weigh',
        {
            description: 'Answer with an object that has a schema.',
            inputSchema: z.object({ city: z.string() }),
            outputSchema: z.object({ city: z.string(), celsius: z.number() }),
        },
        ({ city }) => {
            const structuredContent = { city, celsius: 21.5 };
            return { ...text(JSON.stringify(structuredContent)), structuredContent };
        },
    );

    server.registerTool('refuse', { description: 'Fail.' }, () => ({
        ...text('the shop is closed'),
        isError: true,
    }));

    server.registerTool(
        'steps',
        { description: 'Report progress.', inputSchema: z.object({ count: z.number().int() }) },
        async ({ count: total }, context) => {
            for (let step = 1; step <= total; step += 1) {
                await progress(context, step, { total, message: `step ${step}` });
            }
            return text('finished');
        },
    );

    server.registerTool('shout', { description: 'Log a warning.' }, async (context) => {
        const params = { level: 'warning', logger: 'disk', data: 'almost full' };
        await of.notify(context, { method: 'notifications/message', params });
        return text('logged');
    });

    server.registerTool('endless', { description: 'Wait until cancelled.' }, async (context) => {
        const ended = new Promise((resolve) => of.signal(context).addEventListener('abort', resolve));
        await progress(context, 1);
        await ended;
        wasCancelled();
        return text('too late');
    });

    server.registerTool('was_cancelled', { description: 'Wait for the end of it.' }, async () => {
        await cancelled;
        return text('yes');
    });

    server.registerTool('add_extra', { description: 'Add a tool to the running server.' }, () => {
        hasExtra = true;
        addExtra();
        of.changed?.();
        return text('added');
    });
}
