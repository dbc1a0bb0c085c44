// runCode: results, output, callbacks.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { createContext, run, sandbox, shown, stdout } from './lib.mjs';

const display = 'from IPython.display import *\n';

const texts = async (language, code) => (await run(language, code)).results.map((result) => result.text);


// ---- the default contexts

test('code without a context runs in python, variables stay', async () => {
    const name = `x${randomUUID().slice(0, 8)}`;
    assert.equal((await sandbox.runCode(`${name} = 6`)).text, undefined);
    assert.equal((await sandbox.runCode(`${name} * 7`)).text, '42');
    assert.equal((await sandbox.runCode(name, { language: 'python' })).text, '6');
});

for (const [language, code] of Object.entries({
    javascript: '6 * 7', js: '6 * 7', typescript: '(6 as number) * 7', ts: '(6 as number) * 7',
    r: 'cat(6 * 7)', bash: 'echo $((6 * 7))',
})) {
    test(`${language}: its default context is made on first use`, async () => {
        assert.equal(shown(await sandbox.runCode(code, { language })), '42');
    });
}


// ---- results

test('only the last expression is the result', async () => {
    const execution = await run('python', '1\n2\n3');
    assert.equal(execution.text, '3');
    assert.equal(execution.results.length, 1);
    assert.equal(execution.results[0].isMainResult, true);
});

test('an assignment has no result', async () => {
    const execution = await run('python', 'y = 1');
    assert.deepEqual(execution.results, []);
    assert.equal(execution.text, undefined);
});

test('empty code', async () => {
    const execution = await run('python', '');
    assert.deepEqual([execution.results, execution.logs, execution.error],
                     [[], { stdout: [], stderr: [] }, undefined]);
});

test('executions are counted', async () => {
    const first = await run('python', '1');
    const second = await run('python', '1');
    assert.equal(second.executionCount, first.executionCount + 1);
});

test('several displays and a result keep their order', async () => {
    const { results, text } = await run('python', `${display}display(1)\ndisplay(2)\n3`);
    assert.deepEqual(results.map((result) => [result.text, result.isMainResult]),
                     [['1', false], ['2', false], ['3', true]]);
    assert.equal(text, '3');
});

for (const [format, code, value] of [
    ['html', 'HTML("<b>x</b>")', '<b>x</b>'],
    ['markdown', 'Markdown("*x*")', '*x*'],
    ['svg', `SVG('<svg xmlns="http://www.w3.org/2000/svg"></svg>')`, '<svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['latex', 'Latex("$x$")', '$x$'],
    ['javascript', 'Javascript("x()")', 'x()'],
    ['json', 'JSON({"a": [1, None, "\\u00e9"]})', { a: [1, null, '\u00e9'] }],
    ['png', `Image(b'\\x89PNG\\r\\n\\x1a\\n', format="png")`, 'iVBORw0KGgo='],
    ['jpeg', `Image(b'\\xff\\xd8\\xff', format="jpeg")`, '/9j/'],
    ['pdf', `display({'application/pdf': 'JVBERi0='}, raw=True)`, 'JVBERi0='],
]) {
    test(`python: ${format}`, async () => {
        const { results: [result] } = await run('python', display + code);
        assert(result.formats().includes(format));
        assert.deepEqual(typeof value === 'string' ? result[format].trim() : result[format], value);
    });
}

test('python: MIME types without a name of their own are in extra', async () => {
    const { results: [result] } = await run(
        'python', `${display}display({'application/vnd.custom+json': {'k': 1}}, raw=True)`);
    assert.deepEqual(result.raw.extra, { 'application/vnd.custom+json': { k: 1 } });
});

test('javascript: objects, await, import, redeclared constants', async () => {
    assert.deepEqual(await texts('javascript', '({ a: 1, b: [1, 2] })'), ['{ a: 1, b: [ 1, 2 ] }']);
    assert.deepEqual(await texts('javascript', 'const z = await Promise.resolve(1); z'), ['1']);
    assert.deepEqual(await texts('javascript', 'import { sep } from "path"; const z = sep; z'), ['/']);
});

test('javascript: import attributes', async () => {
    const file = `/tmp/${randomUUID()}.json`;
    await run('javascript', `require('fs').writeFileSync('${file}', '{"k": 6}')`);
    assert.deepEqual(await texts('javascript', `import data from '${file}' with { type: 'json' }; data.k`), ['6']);
    assert.deepEqual(await texts('javascript', `(await import('${file}', { with: { type: 'json' } })).default.k`), ['6']);
});

test('javascript: half a pair of surrogates is no character', async () => {
    assert.deepEqual(await texts('javascript', String.raw`'<\ud800>'`), ['<\ufffd>']);
    assert.deepEqual(await texts('javascript', String.raw`'<\ud83d\ude00\\ud800>'`), ['<😀\\ud800>']);
});

test('typescript: types, interfaces, enums', async () => {
    await run('typescript', 'interface P { x: number }\nenum Color { Red = 3, Green }');
    assert.deepEqual(await texts('typescript', 'const p: P = { x: Color.Green }; p.x'), ['4']);
});

test('r: a data frame in all its formats', async () => {
    const { results: [result] } = await run('r', 'data.frame(a = 1:2, b = c("x", "y"))');
    assert.match(result.text, /1 1 x/);
    assert.match(result.html, /<table/);
    assert.match(result.markdown, /\| 1 \| x \|/);
    assert.match(result.latex, /tabular/);
});

test('r: a plot is a PNG', async () => {
    const { results: [result], error } = await run('r', 'plot(1:3)');
    assert.equal(error, undefined);
    assert.equal(Buffer.from(result.png, 'base64').toString('latin1', 1, 4), 'PNG');
});

for (const [language, code] of Object.entries({
    python: 'if True:\r\n    x = 6\r\nprint(x)\r\n',
    javascript: 'let x = 6\r\nconsole.log(x)\r\n',
    r: 'f <- function() {\r\n    6\r\n}\r\ncat(f())\r\n',
    bash: 'if true; then\r\n    echo 6\r\nfi\r\n',
})) {
    test(`${language}: lines may end as Windows ends them`, async () => {
        assert.equal(shown(await run(language, code)), '6');
    });
}

test('bash: functions, pipes and variables stay', async () => {
    await run('bash', 'greet() { echo "hello $1"; }\nwho=world');
    assert.equal(shown(await run('bash', 'greet "$who" | tr a-z A-Z')), 'HELLO WORLD');
});


// ---- output

test('stdout and stderr are kept apart', async () => {
    const { logs } = await run('python', 'import sys\nprint("o1")\nprint("e1", file=sys.stderr)\nprint("o2")');
    assert.deepEqual([logs.stdout.join(''), logs.stderr.join('')], ['o1\no2\n', 'e1\n']);
});

const odd = 'é 語 😀 \u2028 \u0085 \x1b[31mred\x1b[0m \x00 " \\ end';

for (const [language, code] of Object.entries({
    python: `print(${JSON.stringify(odd)}, end="")`,
    javascript: `process.stdout.write(${JSON.stringify(odd)})`,
    typescript: `process.stdout.write(${JSON.stringify(odd)} as string)`,
})) {
    test(`${language}: characters of every kind`, async () => {
        assert.equal(stdout(await run(language, code)), odd);
    });
}

for (const [language, code] of Object.entries({
    r: `cat('é 語 😀')`, bash: `printf %s 'é 語 😀'`,
})) {
    test(`${language}: characters that are not ASCII`, async () => {
        assert.equal(stdout(await run(language, code)), 'é 語 😀');
    });
}

const lines = Array.from({ length: 20_000 }, (_, i) => `${i}\n`).join('');

for (const [language, code] of Object.entries({
    python: 'for i in range(20000): print(i)',
    javascript: 'for (let i = 0; i < 20000; i++) console.log(i)',
    bash: 'for ((i = 0; i < 20000; i++)); do echo $i; done',
})) {
    test(`${language}: 20 000 lines, complete and in order`, async () => {
        const execution = await run(language, code);
        assert.equal(execution.error, undefined);
        assert(stdout(execution) === lines);
    });
}

test('a line of 4 MB', async () => {
    assert.equal(stdout(await run('python', 'print("x" * (4 << 20))')).length, (4 << 20) + 1);
});

test('a result of 4 MB', async () => {
    assert.equal((await run('python', '"x" * (4 << 20)')).text.length, 4 << 20);
});


// ---- callbacks

test('the callbacks get what the execution has', async () => {
    const seen = { stdout: [], stderr: [], results: [], errors: [] };
    const execution = await run('python', `import sys
print("out")
print("err", file=sys.stderr)
display(1)
1 / 0`, {
        onStdout: (message) => { seen.stdout.push(message); },
        onStderr: (message) => { seen.stderr.push(message); },
        onResult: (result) => { seen.results.push(result); },
        onError: (error) => { seen.errors.push(error); },
    });
    assert.deepEqual(seen.stdout.map(({ line }) => line), execution.logs.stdout);
    assert.deepEqual(seen.stderr.map(({ line }) => line), execution.logs.stderr);
    assert.deepEqual([seen.stdout[0].error, seen.stderr[0].error], [false, true]);
    assert.deepEqual(seen.results, execution.results);
    assert.deepEqual(seen.errors, [execution.error]);
    assert.equal(seen.errors[0].name, 'ZeroDivisionError');
});

// The code goes on when a file is there, and another context makes that file
// once the callback was called.

let opener;
const sharedOpener = () => opener ??= createContext('bash');

const gates = {
    python: 'import os, time\nwhile not os.path.exists(FILE): time.sleep(0.01)\nos.remove(FILE)',
    javascript: 'const fs = require("fs"); while (!fs.existsSync(FILE)); fs.unlinkSync(FILE)',
    typescript: `import { existsSync, unlinkSync } from "fs"
while (!existsSync(FILE)) await new Promise((done) => setTimeout(done, 10))
unlinkSync(FILE)`,
    r: 'flush.console(); while (!file.exists(FILE)) Sys.sleep(0.01); invisible(file.remove(FILE))',
    bash: 'while [ ! -e FILE ]; do sleep 0.01; done; rm FILE',
};

for (const [language, callback, code] of [
    ['python', 'onStdout', 'print("x", flush=True)'],
    ['python', 'onStderr', 'import sys; print("x", file=sys.stderr, flush=True)'],
    ['python', 'onResult', 'display(1)'],
    ['javascript', 'onStdout', 'console.log("x")'],
    ['typescript', 'onStdout', 'console.log("x")'],
    ['r', 'onStdout', 'cat("x")'],
    ['bash', 'onStdout', 'echo x'],
]) {
    test(`${language}: ${callback} is called while the code runs`, async () => {
        const file = `/tmp/gate-${randomUUID()}`;
        const context = await sharedOpener();
        let opened = null;
        const { error } = await run(language, `${code}\n${gates[language].replaceAll('FILE', `"${file}"`)}`, {
            [callback]: () => { opened ??= sandbox.runCode(`touch ${file}`, { context }); },
        });
        assert.equal(error, undefined);
        assert.equal((await opened).error, undefined);
    });
}

test('a callback is awaited before the next', async () => {
    const order = [];
    await run('python', 'print(1, flush=True)\ndisplay(2)\nprint(3, flush=True)', {
        async onStdout({ line }) {
            await new Promise((done) => { setTimeout(done, 50); });
            order.push(line.trim());
        },
        onResult: ({ text }) => { order.push(text); },
    });
    assert.deepEqual(order, ['1', '2', '3']);
});

test('a callback that throws ends runCode, not the context', async () => {
    await assert.rejects(run('python', 'z = 5\nprint(z)', { onStdout() { throw new Error('mine'); } }), /mine/);
    assert.equal((await run('python', 'z')).text, '5');
});

test('a reader that is slow gets everything', async () => {
    const execution = await run('python', `for i in range(200): print(i, "x" * 10000, flush=True)`, {
        onStdout: () => new Promise((done) => { setTimeout(done, 1); }),
    });
    assert.equal(stdout(execution).split('\n').length, 201);
});

test('a silent execution is kept alive beyond requestTimeoutMs', async () => {
    const execution = await run('python', 'import time; time.sleep(6); 1', { requestTimeoutMs: 5500 });
    assert.equal(execution.text, '1');
});

test('timeoutMs 0 is no limit', async () => {
    assert.equal((await run('python', '1', { timeoutMs: 0 })).text, '1');
});

