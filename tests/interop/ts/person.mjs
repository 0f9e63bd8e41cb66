// Answers what servers ask, in one of several moods, the same in all drivers.
export class Person {
    mood = 'accept';
    asked = [];
    #wasCalled;
    #wasDismissed;
    called = new Promise((resolve) => (this.#wasCalled = resolve));
    dismissed = new Promise((resolve) => (this.#wasDismissed = resolve));

    async elicit({ method, params }, signal) {
        this.#note(method, params);
        if (this.mood === 'never') await this.#never(signal);
        if (this.mood !== 'accept') return { action: this.mood };
        if (params.mode === 'url') return { action: 'accept' };
        const fields = Object.entries(params.requestedSchema.properties);
        const content = fields.map(([name, field]) => [name, fillIn(field, params.message)]);
        return { action: 'accept', content: Object.fromEntries(content) };
    }

    sample({ method, params }) {
        this.#note(method, params);
        const content = { type: 'text', text: "a model's answer" };
        return { role: 'assistant', content, model: 'tiny', stopReason: 'endTurn' };
    }

    roots({ method }) {
        this.#note(method, {});
        return { roots: [{ uri: 'file:///work', name: 'work' }] };
    }

    async #never(signal) {
        this.#wasCalled();
        await new Promise((_, reject) => {
            signal.addEventListener('abort', () => {
                this.#wasDismissed();
                reject(new Error('dismissed'));
            });
        });
    }

    #note(method, { _meta, ...params }) {
        this.asked.push({ method, params });
    }
}

function fillIn(field, message) {
    if (field.default !== undefined) return field.default;
    if (field.type === 'array') return [field.items.enum?.[0] ?? field.items.anyOf[0].const];
    if (field.oneOf) return field.oneOf[0].const;
    if (field.enum) return field.enum[0];
    return { boolean: true, integer: 7, number: 7 }[field.type] ?? `re: ${message}`;
}

// What a client says that it can do, with such a person.
export const CAPABILITIES = {
    elicitation: { form: {}, url: {} },
    sampling: { tools: {} },
    roots: {},
};
