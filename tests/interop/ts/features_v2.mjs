// A server written with version 2 of the official TypeScript package that asks, and has resources
// and prompts. Its handlers are written once: the package asks clients of older revisions live.
import { PAGE, QUESTIONS, register, summary, text } from './features.mjs';
import { load } from './packages.mjs';

const { McpServer, ResourceTemplate, completable, inputRequired } = load('@modelcontextprotocol/server');
const { z } = load('zod');
const { serveStdio } = load('@modelcontextprotocol/server/stdio');

function askEverything(context) {
    const { person, thought, roots } = context.mcpReq.inputResponses ?? {};
    if (roots) return summary(person, thought, roots);
    return inputRequired({
        inputRequests: {
            person: inputRequired.elicit({ mode: 'form', ...QUESTIONS.person }),
            thought: inputRequired.createMessage(QUESTIONS.thought),
            roots: inputRequired.listRoots(),
        },
    });
}

function askPage(context) {
    const { page } = context.mcpReq.inputResponses ?? {};
    if (page) return text(page.action);
    return inputRequired({
        inputRequests: { page: inputRequired.elicitUrl({ message: 'Sign in', url: PAGE }) },
    });
}

serveStdio(() => {
    const server = new McpServer(
        { name: 'foreign', version: '2.4.0' },
        { capabilities: { resources: { subscribe: true, listChanged: true } } },
    );
    for (const method of ['resources/subscribe', 'resources/unsubscribe']) {
        server.server.setRequestHandler(method, () => ({}));
    }
    const shape = (fields) => z.object(fields);
    register(server, { ResourceTemplate, completable, shape, askEverything, askPage });
    return server;
});
