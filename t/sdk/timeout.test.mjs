// timeoutMs: the SDK leaves, and the context is usable right after.

import assert from 'node:assert/strict';
import test from 'node:test';
import { TimeoutError } from '@e2b/code-interpreter';
import { createContext, run, seconds, shown, start } from './lib.mjs';

// The code that is left runs for a minute; "right after" is far below that, and
// far above what a busy machine makes of a few milliseconds.

const SOON = 20;

const left = async (language, code, options = {}) => {
    const { end } = await start(language, code, { timeoutMs: 500, ...options });
    await assert.rejects(end, TimeoutError);
};

for (const [language, what, before, code, after] of [
    ['python', 'sleeps', 'x = 42', 'import time; time.sleep(60)', 'x'],
    ['python', 'computes', 'x = 42', 'while True: pass', 'x'],
    ['python', 'prints', 'x = 42', 'import time\nfor i in range(60000): print(i, flush=True); time.sleep(0.001)', 'x'],
    ['python', 'waits for a child', 'x = 42', 'import subprocess; subprocess.run(["sleep", "60"])', 'x'],
    ['python', 'catches the first interrupt', 'x = 42',
     'import time\ntry: time.sleep(60)\nexcept KeyboardInterrupt: time.sleep(60)', 'x'],
    ['javascript', 'computes', 'x = 42', 'for (;;) {}', 'x'],
    ['javascript', 'waits', 'x = 42', 'await new Promise((done) => setTimeout(done, 60000))', 'x'],
    ['javascript', 'waits in a function', 'x = 42', 'async function main() { await new Promise(() => {}) }\nmain()', 'x'],
    ['javascript', 'has an object that is waited for', 'x = 42', '({ then(resolve) {} })', 'x'],
    ['typescript', 'computes', 'const x: number = 42', 'for (;;) {}', 'x'],
    ['typescript', 'waits in a function', 'const x: number = 42',
     'async function main(): Promise<void> { await new Promise(() => {}) }\nmain()', 'x'],
    ['r', 'sleeps', 'x <- 42', 'Sys.sleep(60)', 'cat(x)'],
    ['r', 'computes', 'x <- 42', 'repeat {}', 'cat(x)'],
    ['bash', 'waits for a command', 'x=42', 'sleep 60', 'echo $x'],
    ['bash', 'computes', 'x=42', 'while :; do :; done', 'echo $x'],
]) {
    test(`${language} ${what}: usable right after, variables kept`, async () => {
        await run(language, before);
        await left(language, code);
        const took = await seconds(run(language, after).then((execution) => assert.equal(shown(execution), '42')));
        assert(took < SOON, `it took ${took} s`);
    });
}

test('one timeout after the other', async () => {
    await run('python', 'x = 42');
    for (let i = 0; i < 5; i++) {
        await left('python', 'import time; time.sleep(60)');
    }
    const took = await seconds(run('python', 'x').then(({ text }) => assert.equal(text, '42')));
    assert(took < SOON, `it took ${took} s`);
});

test('the code of those who left the queue never runs', async () => {
    await run('python', 'ran = []');
    const first = await start('python', 'import time; time.sleep(3); ran.append("first")');
    await Promise.all([1, 2, 3].map((i) => assert.rejects(
        run('python', `ran.append(${i})`, { timeoutMs: 300 }), TimeoutError)));
    const last = run('python', 'print(ran)');
    assert.equal((await first.end).error, undefined);
    assert.equal(shown(await last), `['first']`);
});

test('who waits behind one that leaves runs next', async () => {
    await run('python', 'x = 42');
    const first = await start('python', 'import time; time.sleep(60)', { timeoutMs: 2000 });
    const waiting = [1, 2, 3].map((i) => run('python', `x + ${i}`));
    const took = await seconds(Promise.all([
        assert.rejects(first.end, TimeoutError),
        ...waiting.map(async (end, i) => assert.equal((await end).text, String(43 + i))),
    ]));
    assert(took < SOON, `it took ${took} s`);
});

test('an interrupt hits nobody else', async () => {
    const contexts = await Promise.all([createContext('python'), createContext('python')]);
    const other = run('python', 'import time\nfor i in range(30): time.sleep(0.1)\n"whole"', { context: contexts[1] });
    await left('python', 'import time; time.sleep(60)', { context: contexts[0] });
    assert.equal((await other).text, 'whole');
});

test('what was printed before the timeout was seen', async () => {
    const seen = [];
    await assert.rejects(run('python', 'print("early", flush=True)\nimport time; time.sleep(60)', {
        timeoutMs: 2000,
        onStdout: ({ line }) => { seen.push(line.trim()); },
    }), TimeoutError);
    assert.deepEqual(seen, ['early']);
});

test('an execution that ends in time has no timeout', async () => {
    assert.equal((await run('python', 'import time; time.sleep(0.5); 1', { timeoutMs: 30_000 })).text, '1');
});
