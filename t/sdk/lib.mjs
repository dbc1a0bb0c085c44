// What the tests share: the SDK's sandbox, which is the server at KEXEC_URL or
// at localhost:49999, and contexts that are removed behind the tests.

import assert from 'node:assert/strict';
import { after } from 'node:test';
import { Sandbox } from '@e2b/code-interpreter';

export const url = process.env.KEXEC_URL || 'http://localhost:49999';

// Kernels start slowly on a busy machine.  One whose port was taken by somebody
// else between Jupyter's choice and its own bind never answers anybody: then the
// server says 500, and another one is tried.

const patience = { requestTimeoutMs: 180_000 };

export const sandbox = await Sandbox.create(
    { debug: true, sandboxUrl: process.env.KEXEC_URL, ...patience });

const created = new Set();

export const createContext = async (language, options = {}, tries = 3) => {
    try {
        const context = await sandbox.createCodeContext({ language, ...options, ...patience });
        created.add(context.id);
        return context;

    } catch (error) {
        if (tries === 1 || !/^500 /.test(error.message)) throw error;
        console.log(`another kernel for ${language} is tried: ${error.message}`);
        return createContext(language, options, tries - 1);
    }
};

// One context for each language, made for the first who asks.

const shared = {};

export const sharedContext = (language) =>
    shared[language] ??= createContext(language, { cwd: '/tmp' });

after(() => Promise.allSettled(
    [...created].map((id) => sandbox.removeCodeContext(id))));

export const run = async (language, code, options = {}) =>
    sandbox.runCode(code, { ...options, context: options.context ?? await sharedContext(language) });

// runCode forgets its timer when it is refused; it keeps the process alive.

export const refused = (options, error) =>
    assert.rejects(sandbox.runCode('1', { ...options, requestTimeoutMs: 5000 }), error);

export const stdout = (execution) => execution.logs.stdout.join('');
export const stderr = (execution) => execution.logs.stderr.join('');

// What the code showed, as a value or as output.

export const shown = (execution) => {
    assert.equal(execution.error, undefined);
    return execution.results[0]?.text ?? stdout(execution).replace(/\n$/, '');
};

export const interrupt = async ({ id }) => {
    const answer = await fetch(`${url}/contexts/${id}/interrupt`, { method: 'POST' });
    assert.equal(answer.status, 200, await answer.text());
};

// Says that the code runs.

const saysStarted = {
    python: 'print("started", flush=True)',
    javascript: 'console.log("started");',
    typescript: 'console.log("started");',
    r: 'cat("started\\n"); flush.console()',
    bash: 'echo started',
};

// An execution that was seen to run; its end is awaited by "end".

export const start = async (language, code, options = {}) => {
    let seen;
    const running = new Promise((resolve) => { seen = resolve; });
    const end = run(language, `${saysStarted[language]}\n${code}`, {
        ...options,
        onStdout: ({ line }) => { if (line.includes('started')) seen(); },
    });
    await Promise.race([running, end.catch(() => {})]);
    return { end };
};

export const seconds = async (promise) => {
    const began = performance.now();
    await promise;
    return (performance.now() - began) / 1000;
};
