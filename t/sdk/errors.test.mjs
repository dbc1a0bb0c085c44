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
