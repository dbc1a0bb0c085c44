// Errors of the code, and a kernel that dies.

import assert from 'node:assert/strict';
import test from 'node:test';
import { createContext, run, shown, stdout } from './lib.mjs';

test('an error has name, value and traceback', async () => {
    const { error, results } = await run('python', 'def f():\n    return 1 / 0\nf()');
    assert.deepEqual([error.name, error.value], ['ZeroDivisionError', 'division by zero']);
    assert.match(error.traceback, /ZeroDivisionError/);
    assert.match(error.traceback, /return/);
    assert.deepEqual(results, []);
});

test('what came before an error is kept', async () => {
    const { error, logs, results } = await run('python', 'print("before")\ndisplay(1)\nraise ValueError("bad")');
    assert.deepEqual([logs.stdout.join(''), results.length, error.name, error.value],
                     ['before\n', 1, 'ValueError', 'bad']);
});

for (const [what, language, code, name, value] of [
    ['a syntax error', 'python', 'def f(:', 'SyntaxError', /invalid syntax/],
    ['an exception of the user', 'python', 'class Mine(Exception): pass\nraise Mine("é 😀")', 'Mine', /^é 😀$/],
    ['an endless recursion', 'python', 'def f(): f()\nf()', 'RecursionError', /maximum recursion depth/],
    ['sys.exit()', 'python', 'import sys; sys.exit(3)', 'SystemExit', /^3$/],
    ['input()', 'python', 'input()', 'StdinNotImplementedError', /./],
    ['a thrown error', 'javascript', 'throw new RangeError("bad")', 'RangeError', /^bad$/],
    ['a rejected promise', 'javascript', 'await Promise.reject(new TypeError("bad"))', 'TypeError', /^bad$/],
    ['a syntax error', 'javascript', 'let = = 1', 'SyntaxError', /./],
    ['a syntax error', 'typescript', 'const n: = 1', 'SyntaxError', /./],
    ['an unknown object', 'r', 'nothing', 'ERROR', /nothing/],
    ['an unknown command', 'bash', 'no-such-command', 'ExitError', /^127$/],
    ['an exit status', 'bash', '(exit 3)', 'ExitError', /^3$/],
]) {
    test(`${language}: ${what}`, async () => {
        const { error } = await run(language, code);
        assert.equal(error?.name, name);
        assert.match(error.value, value);
    });
}

// The traceback has the place and the line as it was written.

for (const [language, what, code, value, traceback] of [
    ['javascript', 'a syntax error', 'let a = 1\nlet b = a +;', /\(2:12\)$/, /:2:12\nlet b = a \+;\n {11}\^\n/],
    ['javascript', 'a syntax error behind an await', 'await null\n\nlet = = 1', /\(3:7\)$/, /:3:7\nlet = = 1\n/],
    ['javascript', 'JSON that is none', '\nJSON.parse("[")', /^(?!.*\(\d+:\d+\)$)/, /at <anonymous>:2:6/],
    ['typescript', 'a syntax error', 'let a = 1\nconst n: = 1', /\(2:10\)$/, /:2:10\nconst n: = 1\n {9}\^\n/],
    ['typescript', 'an error behind an enum', `enum Color {
    Red = 3,
    Green,
}

namespace Shapes {
    export const sides = 4;
}

class Point {
    constructor(private x: number,
                readonly y = 2) {
        if (x) throw new Error(\`\${
            x} and \${Color.Green}
the end\`);
    }
}

new Point(1);`, /^1 and 4\nthe end$/, /at new Point \(<anonymous>:13:.*\n +at <anonymous>:19:1/],
    ['typescript', 'a rejection behind an enum', `async function main(): Promise<void> {
    enum Kind { A }
    await null;
    throw new Error('bad');
}
main()`, /^bad$/, /at main \(<anonymous>:4:/],
    ['javascript', 'its cause', 'throw new Error("outer", { cause: new RangeError("inner") })', /^outer$/,
     /Error: outer\n[^]*\[cause\]: RangeError: inner\n +at <anonymous>:1:/],
    ['javascript', 'its inner errors', 'await Promise.any([Promise.reject(new TypeError("one")), Promise.reject(2)])',
     /rejected/, /\[errors\]: \[\n +TypeError: one\n[^]*2/],
    ['javascript', 'its properties', 'require("fs").readFileSync("/nowhere")', /^ENOENT/, /code: 'ENOENT'/],
]) {
    test(`${language}: ${what} is told`, async () => {
        const { error } = await run(language, code);
        assert.match(error.value, value);
        assert.match(error.traceback, traceback);
    });
}

for (const [language, code, count] of [
    ['javascript', 'Promise.reject(new Error("bad"))', 0],
    ['javascript', 'Promise.reject(new Error("bad")); 1', 1],
]) {
    test(`${language}: ${code}: a rejection is told once`, async () => {
        const { error, logs } = await run(language, code);
        assert.deepEqual([error?.value, logs.stderr.join('').split('bad').length - 1],
                         [count ? undefined : 'bad', count]);
    });
}

for (const [language, before, fails, after] of [
    ['python', 'x = 42', '1 / 0', 'x'],
    ['javascript', 'x = 42', 'nothing', 'x'],
    ['typescript', 'const x: number = 42', 'nothing', 'x'],
    ['r', 'x <- 42', 'stop("bad")', 'cat(x)'],
    ['bash', 'x=42', 'false', 'echo $x'],
]) {
    test(`${language}: variables outlive an error`, async () => {
        await run(language, before);
        assert((await run(language, fails)).error);
        assert.equal(shown(await run(language, after)), '42');
    });
}

test('a kernel that dies is told, and the next execution runs in a new one', async () => {
    const context = await createContext('python', { cwd: '/usr/share' });
    const died = await run('python', 'import os, signal; os.kill(os.getpid(), signal.SIGKILL)', { context });
    assert.equal(died.error.name, 'KernelDied');
    assert.equal(shown(await run('python', 'import os; os.getcwd()', { context })), '/usr/share');
});

test('onError may be the only one who is told', async () => {
    const errors = [];
    await run('python', '1 / 0', { onError: ({ name }) => { errors.push(name); } });
    assert.deepEqual(errors, ['ZeroDivisionError']);
    assert.equal(stdout(await run('python', 'print(1)')), '1\n');
});
