// docs/compat.md: each cell of its table is run as it stands.  A cell is
// `code` → `what a client sees`, or "none" for nothing; the test of a cell is
// named "language: column".

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import test from 'node:test';
import { createContext, interrupt, run as runIn, sandbox, shown, start, stderr, stdout } from './lib.mjs';

const LANGUAGES = ['python', 'javascript', 'typescript', 'r', 'bash'];
const COLUMNS = ['result', 'stdout', 'stderr', 'error', 'env', 'cwd', 'interrupt', 'restart'];

const rows = readFileSync(new URL('../../docs/compat.md', import.meta.url), 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('|'))
    .map((line) => line.slice(1, -1).split('|').map((cell) => cell.trim()));

const [head, , ...body] = rows;

test('docs/compat.md has all languages and columns', () => {
    assert.deepEqual(head, ['', ...COLUMNS]);
    assert.deepEqual(body.map(([language]) => language), LANGUAGES);
});

const cellOf = (language, column) => {
    const text = body.find((row) => row[0] === language)[head.indexOf(column)];
    const parts = /^`(.+)` → (?:`(.*)`|none)$/.exec(text);
    assert(parts, `not a cell: ${text}`);
    return { code: parts[1], sees: parts[2] };
};

const CWD = '/usr/share';
const contexts = {};
const contextOf = (language) => contexts[language] ??= createContext(language, { cwd: CWD });
const run = async (language, code, options = {}) =>
    runIn(language, code, { context: await contextOf(language), ...options });

const variable = {
    python: 'x = 42',
    javascript: 'const x = 42',
    typescript: 'const x: number = 42',
    r: 'x <- 42',
    bash: 'x=42',
};

const value = { python: 'x', javascript: 'x', typescript: 'x', r: 'cat(x)', bash: 'echo $x' };

const runs = {
    async result(language, { code, sees }) {
        const { results, error } = await run(language, code);
        assert.equal(error, undefined);
        assert.equal(results[0]?.text, sees);
    },

    async stdout(language, { code, sees }) {
        const execution = await run(language, code);
        assert.equal(execution.error, undefined);
        assert.equal(stdout(execution).trim(), sees);
        assert.equal(stderr(execution), '');
    },

    async stderr(language, { code, sees }) {
        const execution = await run(language, code);
        assert.equal(execution.error, undefined);
        assert.equal(stderr(execution).trim(), sees);
        assert.equal(stdout(execution), '');
    },

    async error(language, { code, sees }) {
        const { error } = await run(language, code);
        assert.equal(error?.name, sees);
    },

    // For the one execution alone.

    async env(language, { code, sees }) {
        assert.equal(shown(await run(language, code, { envs: { NAME: sees } })), sees);
        const after = await run(language, code);
        assert.doesNotMatch(JSON.stringify([after.results, after.logs]), new RegExp(sees));
    },

    async cwd(language, { code, sees }) {
        assert.equal((await contextOf(language)).cwd, CWD);
        assert.equal(shown(await run(language, code)), sees);
    },

    // The variables are still there.

    async interrupt(language, { code, sees }) {
        const context = await contextOf(language);
        await run(language, variable[language]);
        const running = await start(language, code, { context });
        await interrupt(context);
        assert.equal((await running.end).error?.name, sees);
        assert.equal(shown(await run(language, value[language])), '42');
    },

    // The variables are gone, the working directory is not.

    async restart(language, { code, sees }) {
        await run(language, variable[language]);
        assert.equal(shown(await run(language, value[language])), '42');
        await sandbox.restartCodeContext(await contextOf(language));
        assert.equal(shown(await run(language, code)), sees);
        const cwd = cellOf(language, 'cwd');
        assert.equal(shown(await run(language, cwd.code)), cwd.sees);
    },
};

for (const language of LANGUAGES) {
    for (const column of COLUMNS) {
        test(`${language}: ${column}`, () => runs[column](language, cellOf(language, column)));
    }
}
