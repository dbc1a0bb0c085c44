// For each line that it reads from descriptor 252 it runs the code in the file
// at 250 and answers on 251 with the same line, a space and a line of JSON:
// {data} or {name, value, traceback}.  A line with "!" at its end interrupts the
// request of that number, if it runs.
//
// No code of the user's runs in this realm, so Promise, JSON and the methods
// of arrays are as they should be.  What node's functions return is of the
// user's realm: a method that it inherits may be the user's.

'use strict';

const fs = require('fs');
const inspector = require('inspector');
const net = require('net');
const { Readable } = require('stream');
const { inspect, TextEncoder, types: { isNativeError } } = require('util');
const { setImmediate } = require('timers');
const vm = require('vm');
const process = require('process');
const translate = require('./translate.js');

const [GATE, CODE, REPLY, REQUEST] = [248, 250, 251, 252];

const {
    closeSync, fstatSync, openSync, readFileSync, readSync, writeSync,
} = fs;
const { Socket } = net;
const { console } = user;
const encode = ((encoder) => encoder.encode.bind(encoder))(new TextEncoder());
const exit = process.reallyExit.bind(process);
const { listeners, on } = process;


// ---- what the user's code has closed or spoilt

// Its standard output and error are opened again for the next piece of code.
// What it has put in their place by intention stays there.

const streams = [['stdout', 1], ['stderr', 2]].map(([name, fd]) => ({
    name, fd, copy: openSync(`/proc/self/fd/${fd}`, 'w'),
}));

const isOpen = (fd) => {
    try {
        fstatSync(fd);
        return true;
    } catch {
        return false;
    }
};

// Node makes its own streams look as if they had never ended.

const finished = new WeakSet();

const reopen = ({ name, fd, copy }) => {
    const wasOpen = isOpen(fd);
    const stream = process[name];

    if (!wasOpen) {
        const opened = openSync(`/proc/self/fd/${copy}`, 'w');

        if (opened !== fd) {            // 0 is closed, too
            closeSync(opened);
        }
    }

    if (wasOpen && stream && !stream.destroyed && !finished.has(stream)) {
        return;
    }

    const value = watch(new Socket({ fd, readable: false, writable: true }));

    Object.defineProperty(process, name, {
        value, writable: true, configurable: true, enumerable: true,
    });
    console[`_${name}`] = value;
};

const watch = (stream) => stream.on('finish', () => finished.add(stream));

watch(process.stdout);
watch(process.stderr);

// Never without one: for a moment SIGINT would end the process.

const listen = (name, listener) => {
    const all = Reflect.apply(listeners, process, [name]);

    for (let i = 0; i < all.length; i++) {
        if (all[i] === listener) {
            return;
        }
    }

    Reflect.apply(on, process, [name, listener]);
};

// With these on all objects neither V8's REPL mode nor node's inspector works.

const objects = user.Object.prototype;

const cleanse = () => ['then', 'toJSON'].forEach(
    (name) => Reflect.deleteProperty(objects, name));

// Standard input is at its end for each piece of code anew: node waits for ever
// where somebody reads on who comes after the end.

let stdin = null;

const getStdin = () => {
    if (!stdin) {
        stdin = new Readable({ read() {} });
        stdin.fd = 0;
        stdin.push(null);
    }

    return stdin;
};

Object.defineProperty(process, 'stdin', {
    get: getStdin, configurable: true, enumerable: true,
    set: (value) => Object.defineProperty(process, 'stdin', {
        value, writable: true, configurable: true, enumerable: true,
    }),
});

const prepare = () => {
    try {
        stdin = null;
        cleanse();
        isOpen(0) || openSync('/dev/null');
        streams.forEach(reopen);
        listen('SIGINT', onInterrupt);
        listen('uncaughtException', onUncaught);
    } catch {
        // the code has gone far to get here
    }
};


// ---- running

// An interrupt ends what runs before the first await (SIGINT); later it can only
// end the waiting (its line): what was awaited goes on.

let interrupt = null;
let running = '';
let interrupted = '';

const onInterrupt = () => interrupt?.();    // the code's own SIGINT

const onInterruptOf = (number) => {
    interrupted = number;

    if (running === number) {
        interrupt?.();
    }
};

const INTERRUPTED = { name: 'KeyboardInterrupt', value: '', traceback: [] };

const interruptible = (number, work) => new Promise((resolve, reject) => {
    running = number;
    interrupt = () => reject(INTERRUPTED);

    if (interrupted === number) {       // before it began
        interrupt();
    } else {
        work().then(resolve, reject);
    }
}).finally(() => { interrupt = null; });

// When runInContext() begins and when it is left, SIGINT would end the process
// for a moment, and one that it does not see in time would hit what it runs
// next.  So there is a token in the gate (see child.py) only in between, and one
// that is gone means that SIGINT is on its way and ends the wait, unless the
// code had it caught.

const token = new BigUint64Array([1n]);
const never = new Int32Array(new SharedArrayBuffer(4));
const CAUGHT = 10000;                   // ms

const openGate = () => {
    try {
        writeSync(GATE, token);
    } catch {
        exit(1);                        // the code has closed it
    }
};

const closeGate = () => {
    try {
        return readSync(GATE, new BigUint64Array(1)) > 0;
    } catch (error) {
        return told(() => error.code) === 'EAGAIN' ? false : exit(1);
    }
};

const script = new vm.Script('work()');
const { runInContext } = script;

const guarded = (work) => {
    globalThis.work = () => {
        openGate();

        try {
            return work();
        } finally {
            closeGate() || Atomics.wait(never, 0, 0, CAUGHT);
        }
    };

    try {
        return Reflect.apply(runInContext, script,
                             [user.realm, { breakOnSigint: true }]);
    } catch (error) {
        closeGate();                    // for a SIGINT of the code's own
        throw error;
    }
};

// The inspector's REPL mode has await at the top and lets names be declared
// again.  It names the values of this process: a function that is called
// through it gets the value itself.

const session = new inspector.Session();
session.connect();

const { holder } = user;
let holderId;

user.hide('kexecHolder', holder);
session.post('Runtime.evaluate', { expression: 'kexecHolder' },
             (_, { result }) => { holderId = result.objectId; });
delete user.global.kexecHolder;

const valueOf = (remote) => {
    session.post('Runtime.callFunctionOn', {
        objectId: holderId,
        functionDeclaration: 'function (value) { this.value = value; }',
        arguments: [remote.objectId ? { objectId: remote.objectId }
                    : 'unserializableValue' in remote
                      ? { unserializableValue: remote.unserializableValue }
                      : { value: remote.value }],
    });

    session.post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });

    const { value } = holder;
    holder.value = undefined;

    return value;
};

const evaluate = (expression) => new Promise((resolve, reject) => {
    const done = (error, answer) => {
        if (error && /collected/.test(error.message)) {
            reject(new translate.Refused('Error', 'what is awaited can never ' +
                'be settled: nothing refers to its promise any more'));
            return;
        }

        if (error) {
            exit(1);                    // node thinks that it is at its end
        }

        const { result, exceptionDetails: details } = answer;
        const value = valueOf(details?.exception ?? result);

        resolve([value, details]);
    };

    guarded(() => session.post('Runtime.evaluate', {
        expression, objectGroup: 'cell', replMode: true,
    }, done));
});

// A value in a list is not taken for a promise.

const settled = (value) => new Promise((resolve, reject) => {
    user.settle(value, (result) => resolve([result]), reject);
});


// ---- results

const DISPLAY = Symbol.for('Jupyter.display');

const bundle = async (value) => {
    const display = value?.[DISPLAY];
    let data = null;

    if (value instanceof user.Bundle) {
        data = value.data;
    } else if (typeof display === 'function') {
        [data] = await settled(display.call(value));
    } else if (value !== undefined) {
        data = { 'text/plain': typeof value === 'string' ? value
                               : ownFrames(inspect(value)) };
    }

    return data && Object.fromEntries(Object.keys(data).map((type) => [
        type, typeof data[type] === 'string' ? data[type]
              : JSON.parse(JSON.stringify(data[type]) ?? 'null'),
    ]));
};

// The frames from the inspector outwards, and those of node's queue of tasks,
// are of no interest to the user.  A brace may follow the last one.

const OURS = [
    /\n +at Session\.post \(node:inspector.*(\n +at .*)*/g,
    /\n +\.\.\. \d+ lines matching cause stack trace \.\.\.\n +at .*kernel\.js.*/g,
    /\n +at .*\(?node:internal\/(process\/task_queues|fixed_queue):.*/g,
];

const ownFrames = (text) => OURS.reduce(
    (rest, frames) => rest.replace(
        frames, (lines) => lines.endsWith(' {') ? ' {' : ''), text);

const isFrame = /\n +at /;

const told = (read, otherwise) => {
    try {
        return String(read());
    } catch {
        return otherwise;
    }
};

const failure = (error, details, code) => {
    if (!isNativeError(error) && !(error instanceof user.Error)) {
        return { name: 'Error', value: told(() => inspect(error), ''),
                 traceback: [] };
    }

    const name = told(() => error.name, 'Error');
    let value = told(() => error.message, '');

    // With its cause, inner errors and properties; one that cannot be shown
    // still has a stack.

    let text = ownFrames(told(() => inspect(error),
                              told(() => error.stack ?? name, name)));

    if (name === 'SyntaxError' && details?.scriptId && !isFrame.test(text)) {
        const [line, column] = [details.lineNumber, details.columnNumber];

        value = translate.placed(value, line, column);
        text = translate.snippet(code, line, column) + text;
    }

    return { name, value, traceback: [text] };
};


// ---- requests and answers

const outcome = async (code) => {
    const [value, details] = await evaluate(translate.toScript(code));

    if (details) {
        return failure(value, details, code);
    }

    if (Object(value) !== value) {      // runs no code to be shown
        return { data: await bundle(value) };
    }

    // Waited for at once, or node takes its rejection for one that nobody
    // handles.

    const [result] = await guarded(() => settled(value));

    return { data: await guarded(() => bundle(result)) };
};

const run = async (number, code) => {
    try {
        return await interruptible(number, () => outcome(code));

    } catch (error) {
        if (error === INTERRUPTED ||
            told(() => error.code) === 'ERR_SCRIPT_EXECUTION_INTERRUPTED')
        {
            return INTERRUPTED;
        }

        return error instanceof translate.Refused ? error : failure(error);
    }
};

const writeAll = (fd, text) => {
    const bytes = encode(text);

    for (let done = 0; done < bytes.length;) {
        done += writeSync(fd, bytes, done);
    }
};

// What fails outside of an execution must not end the process.

const onUncaught = (error) => {
    const text = told(() => inspect(error), 'an error');

    writeAll(streams[1].copy, `${ownFrames(`Uncaught ${text}`)}\n`);
};

// JSON.stringify() escapes half a pair of surrogates, which is no character,
// and JSON to some and none to others.

const toLine = (answer) => JSON.stringify(answer).replace(
    /\\(?:u(d[89a-f]..)|.)/g, (escape, half) => half ? '\\ufffd' : escape);

const serve = async (number) => {
    prepare();

    try {
        const code = readFileSync(`/proc/self/fd/${CODE}`, 'utf8');
        const answer = await run(number, code);

        // What it rejected, and nobody handled, is told as its own.

        await new Promise((resolve) => { setImmediate(resolve); });
        writeAll(REPLY, `${number} ${toLine(answer)}\n`);

    } catch {
        exit(1);                        // the code has closed 250 or 251
    }
};

let number = '';
let served = Promise.resolve();

const requests = new Socket({ fd: REQUEST });

requests.emit = requests.emit;          // its own, whatever becomes of others'

requests.on('data', (bytes) => {
    for (let i = 0; i < bytes.length; i++) {
        if (bytes[i] === 10) {
            const line = number;
            number = '';

            if (line.endsWith('!')) {
                onInterruptOf(line.slice(0, -1));
            } else {
                served = served.then(() => serve(line));
            }
        } else {
            number += String.fromCharCode(bytes[i]);
        }
    }
}).on('end', () => exit(0));

user.hide('kexecImport', user.importFromHere);
prepare();
