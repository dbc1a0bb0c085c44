// envs of runCode.

import assert from 'node:assert/strict';
import test from 'node:test';
import { refused, run, shown, stdout } from './lib.mjs';

const read = {
    python: (name) => `import os; print(os.environ.get("${name}"), end="")`,
    javascript: (name) => `process.stdout.write(String(process.env.${name}))`,
    typescript: (name) => `process.stdout.write(String(process.env.${name}))`,
    r: (name) => `cat(Sys.getenv("${name}", NA))`,
    bash: (name) => `printf %s "\${${name}-none}"`,
};

const value = `it's "x" \\ $HOME \`id\` %magic {0}\n\tand é 😀`;

for (const language of Object.keys(read)) {
    test(`${language}: a value is exact whatever is in it`, async () => {
        assert.equal(stdout(await run(language, read[language]('VALUE'), { envs: { VALUE: value } })), value);
    });

    test(`${language}: a prior value comes back`, async () => {
        const prior = stdout(await run(language, read[language]('PATH')));
        assert.match(prior, /bin/);
        const envs = { PATH: `/nowhere:${prior}` };
        assert.equal(stdout(await run(language, read[language]('PATH'), { envs })), envs.PATH);
        assert.equal(stdout(await run(language, read[language]('PATH'))), prior);
    });
}

test('envs leave the line numbers and magics of python alone', async () => {
    const envs = { A: '1', B: '2' };
    const { error } = await run('python', 'pass\npass\n1 / 0', { envs });
    assert.match(error.traceback, /line 3/);
    assert.equal(stdout(await run('python', '%%bash\necho $A$B', { envs })), '12\n');
});

test('child processes have them', async () => {
    const code = 'import subprocess; subprocess.check_output(["printenv", "CHILD"], text=True).strip()';
    assert.equal(shown(await run('python', code, { envs: { CHILD: 'seen' } })), 'seen');
});

test('they are gone after an error as well', async () => {
    await run('python', '1 / 0', { envs: { BRIEF: 'x' } });
    assert.equal(stdout(await run('python', read.python('BRIEF'))), 'None');
});

test('an empty value is a value', async () => {
    assert.equal(stdout(await run('python', 'import os; print(repr(os.environ["EMPTY"]), end="")',
                                  { envs: { EMPTY: '' } })), `''`);
});

test('a name that is none is refused', async () => {
    await refused({ language: 'python', envs: { 'A=B': 'x' } }, /400/);
});
