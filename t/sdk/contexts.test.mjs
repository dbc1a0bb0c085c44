// Contexts: create, list, restart, remove, many at a time.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import test from 'node:test';
import { InvalidArgumentError, NotFoundError, SandboxError } from '@e2b/code-interpreter';
import { createContext, refused, run, sandbox, sharedContext, shown, start, stdout } from './lib.mjs';

const ids = async () => (await sandbox.listCodeContexts()).map(({ id }) => id);

test('a context has an id, a language and a cwd', async () => {
    const context = await sharedContext('python');
    assert.deepEqual(context, { id: context.id, language: 'python', cwd: '/tmp' });
    assert.match(context.id, /^[0-9a-f-]{36}$/);
});

test('the list has the contexts in the order of their creation', async () => {
    const first = await createContext('python');
    const second = await createContext('bash', { cwd: '/usr' });
    const list = await sandbox.listCodeContexts();
    assert.deepEqual(list.slice(-2), [first, second]);
    assert.equal(list.filter(({ id }) => id === first.id).length, 1);
});

test('contexts share nothing', async () => {
    const other = await createContext('python');
    await run('python', 'mine = 1');
    assert.equal((await run('python', 'mine', { context: other })).error.name, 'NameError');
});

test('a removed context is gone', async () => {
    const context = await createContext('python');
    await sandbox.removeCodeContext(context);
    assert(!(await ids()).includes(context.id));
    await refused({ context }, NotFoundError);
});

test('contexts are removed and restarted by their ids alone, too', async () => {
    const context = await createContext('bash');
    await sandbox.restartCodeContext(context.id);
    assert.equal(shown(await run('bash', 'echo 1', { context })), '1');
    await sandbox.removeCodeContext(context.id);
    assert(!(await ids()).includes(context.id));
});

test('a restart ends what runs, and the context takes the next', async () => {
    const context = await createContext('python');
    const running = await start('python', 'import time; time.sleep(60)', { context });
    await sandbox.restartCodeContext(context);
    assert.equal((await running.end).error.name, 'ContextRestarted');
    assert.equal((await run('python', '1', { context })).text, '1');
});

test('a removal ends what runs', async () => {
    const context = await createContext('python');
    const running = await start('python', 'import time; time.sleep(60)', { context });
    await sandbox.removeCodeContext(context);
    assert.equal((await running.end).error.name, 'ContextDeleted');
});

test('a restarted context counts from 1 and keeps its place in the list', async () => {
    const before = await createContext('python');
    const context = await createContext('python', { cwd: '/usr' });
    await run('python', '1', { context });
    await sandbox.restartCodeContext(context);
    assert.equal((await run('python', '1', { context })).executionCount, 1);
    assert.deepEqual((await sandbox.listCodeContexts()).slice(-2), [before, context]);
});

test('a context that is unknown cannot be removed or restarted', async () => {
    await assert.rejects(sandbox.removeCodeContext(randomUUID()), NotFoundError);
    await assert.rejects(sandbox.restartCodeContext(randomUUID()), NotFoundError);
});

test('a language without a kernel is refused', async () => {
    await assert.rejects(createContext('cobol'), (error) => error instanceof SandboxError && /400/.test(error.message));
    await refused({ language: 'cobol' }, /400/);
});

test('a cwd that does not exist is refused, and no context is left', async () => {
    const before = await ids();
    await assert.rejects(createContext('python', { cwd: '/does/not/exist' }), /400/);
    assert.deepEqual(await ids(), before);
});

test('context and language together are refused by the SDK', async () => {
    await assert.rejects(run('python', '1', { language: 'python' }), InvalidArgumentError);
});

test('many executions of one context run one after the other, in order', async () => {
    await run('python', 'n = 0');
    const executions = await Promise.all(Array.from({ length: 20 }, () => run('python', 'n += 1; n')));
    assert.deepEqual(executions.map(({ text }) => text), Array.from({ length: 20 }, (_, i) => String(i + 1)));
});

// All run at the same time: none ends before all have started.

test('20 parallel contexts', async () => {
    const contexts = await Promise.all(Array.from({ length: 20 }, () => createContext('python')));
    assert.equal(new Set(contexts.map(({ id }) => id)).size, 20);
    const opener = await sharedContext('bash');
    const file = `/tmp/gate-${randomUUID()}`;

    let waiting = contexts.length;
    let opened;
    const executions = await Promise.all(contexts.map((context, i) => sandbox.runCode(`
import os, time
x = ${i}
print("started", flush=True)
while not os.path.exists("${file}"): time.sleep(0.05)
os.getpid()`, {
        context,
        timeoutMs: 180_000,
        onStdout() { if (--waiting === 0) opened = run('bash', `touch ${file}`, { context: opener }); },
    })));
    await opened;
    await run('bash', `rm ${file}`);
    assert.equal(new Set(executions.map(({ text }) => text)).size, 20);

    const values = await Promise.all(contexts.map((context) => sandbox.runCode('x', { context })));
    assert.deepEqual(values.map(({ text }) => text), contexts.map((_, i) => String(i)));

    await Promise.all(contexts.map((context) => sandbox.removeCodeContext(context)));
    const left = await ids();
    assert(contexts.every(({ id }) => !left.includes(id)));
});
