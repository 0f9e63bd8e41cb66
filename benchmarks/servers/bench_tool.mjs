// What every server of the benchmarks offers: the same tool under as many names as asked for.
export const DESCRIPTION = 'Echo a text a number of times, in a given letter case.';

export const names = (count) => [
    'echo',
    ...Array.from({ length: count - 1 }, (_, i) => `t${String(i + 1).padStart(3, '0')}`),
];

export const fields = (z) => ({
    text: z.string().describe('what to echo'),
    repeat: z.number().int().min(1).max(10).default(1),
    mode: z.enum(['plain', 'upper', 'lower']).default('plain'),
});

export async function echo({ text, repeat, mode }) {
    let out = text.repeat(repeat);
    if (mode === 'upper') out = out.toUpperCase();
    else if (mode === 'lower') out = out.toLowerCase();
    return { content: [{ type: 'text', text: out }] };
}
