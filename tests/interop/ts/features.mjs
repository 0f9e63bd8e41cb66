// Resources and prompts of the foreign servers. What differs between the packages is in `of`: their
// `ResourceTemplate` and `completable`, what makes a schema of arguments, and the tools that ask.
import { load } from './packages.mjs';

const { z } = load('zod');

export const PAGE = 'https://example.com/login';
export const text = (words) => ({ content: [{ type: 'text', text: words }] });

// What the tools ask, as it goes over the wire.
export const QUESTIONS = {
    person: {
        message: 'Who?',
        requestedSchema: {
            type: 'object',
            properties: { name: { type: 'string' }, nights: { type: 'integer', default: 3 } },
            required: ['name'],
        },
    },
    thought: {
        messages: [{ role: 'user', content: { type: 'text', text: 'Think' } }],
        maxTokens: 10,
    },
    page: { message: 'Sign in', url: PAGE },
};

export const summary = (person, thought, roots) =>
    text(
        `${person.content.name} ${person.content.nights}, ${thought.content.text},` +
            ` ${roots.roots[0].uri}`,
    );

export function register(server, of) {
    const { ResourceTemplate, completable, shape, askEverything, askPage } = of;
    const starting = (values) => (value) => values.filter((each) => each.startsWith(value));

    server.registerResource('words', 'test://text', { mimeType: 'text/plain' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'text/plain', text: 'words' }],
    }));
    server.registerResource('blob', 'test://blob', { mimeType: 'image/png' }, (uri) => ({
        contents: [{ uri: uri.href, mimeType: 'image/png', blob: 'iVBORw==' }],
    }));
    server.registerResource(
        'record',
        new ResourceTemplate('test://records/{number}', {
            list: undefined,
            complete: { number: starting(['12', '13', '20']) },
        }),
        { mimeType: 'text/plain' },
        (uri, { number }) => ({
            contents: [{ uri: uri.href, mimeType: 'text/plain', text: `record ${number}` }],
        }),
    );
    const styles = (value, context) => {
        const code = context?.arguments?.code;
        const more = code === undefined ? [] : [`${code}-like`];
        return starting(['strict', 'friendly', ...more])(value);
    };
    server.registerPrompt(
        'review',
        {
            description: 'Review code.',
            argsSchema: shape({
                code: z.string(),
                // Version 1 looks at the optional text for completions, version 2 inside it.
                style: completable(completable(z.string(), styles).optional(), styles),
            }),
        },
        ({ code, style = 'strict' }) => ({
            messages: [{ role: 'user', content: { type: 'text', text: `${code} ${style}` } }],
        }),
    );
    const described = (description) => ({ description });
    server.registerTool('ask_everything', described('Ask everyone.'), askEverything);
    server.registerTool('ask_page', described('Ask to open a page.'), askPage);
    server.registerTool('touch', described('Say that a resource changed.'), async () => {
        await server.server.sendResourceUpdated({ uri: 'test://text' });
        return text('touched');
    });
}
