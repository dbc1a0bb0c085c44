// The node of the kernels for JavaScript and TypeScript: for each line that it
// reads from descriptor 252 it runs the code in the file at 250 and answers on
// 251 with a line of JSON, {data} or {name, value, traceback}.

'use strict';

const fs = require('fs');
const inspector = require('inspector');
const { createRequire } = require('module');
const net = require('net');
const path = require('path');
const util = require('util');
const vm = require('vm');

const [CODE, REPLY, REQUEST] = [250, 251, 252];
const typescript = process.argv[2] === 'typescript';

// Two libraries may be absent: without acorn there is no import, without amaro
// no TypeScript.

const library = (name) => {
    try {
        return require(name);
    } catch {
        return null;
    }
};

const acorn = library('acorn');
const amaro = typescript && library('amaro');


// ---- from the user's code to what is run

// Types become blanks; what is more than types (enum) is translated.

const withoutTypes = (code) => {
    if (!amaro) {
        throw new Error('TypeScript needs the npm package amaro');
    }

    try {
        return amaro.transformSync(code, { mode: 'strip-only' }).code;

    } catch (error) {
        if (error.code !== 'UnsupportedSyntax') {
            const wrong = new SyntaxError(
                `${error.message} (${error.startLine}:${error.startColumn})`);
            wrong.stack = `SyntaxError: ${wrong.message}\n${error.snippet}`;
            throw wrong;
        }

        return amaro.transformSync(code, { mode: 'transform' }).code;
    }
};

// Scripts have no import: "import a, { b as c } from 'm'" is made
// "const { default: a, b: c } = await kexecImport('m')", import() likewise.

const imported = (node) => {
    const names = [];
    let all = '';

    for (const specifier of node.specifiers) {
        const local = specifier.local.name;

        if (specifier.type === 'ImportNamespaceSpecifier') {
            all = `const ${local} = `;
        } else if (specifier.type === 'ImportDefaultSpecifier') {
            names.push(`default: ${local}`);
        } else {
            const { name, raw } = specifier.imported;
            names.push(`${name || raw}: ${local}`);
        }
    }

    const module = `await kexecImport(${node.source.raw})`;

    if (all && names.length) {
        return `${all}${module}, { ${names.join(', ')} } = await ` +
               `kexecImport(${node.source.raw});`;
    }

    return names.length ? `const { ${names.join(', ')} } = ${module};`
                        : `${all}${module};`;
};

const withoutImports = (code) => {
    const edits = [];
    let tree;

    if (!acorn || !/\bimport\b/.test(code)) {
        return code;
    }

    try {
        tree = acorn.parse(code, {
            ecmaVersion: 'latest',
            sourceType: 'module',
            allowAwaitOutsideFunction: true,
            allowReturnOutsideFunction: true,
        });
    } catch {
        return code;                    // node says better what is wrong
    }

    const visit = (node) => {
        if (node.type === 'ImportDeclaration') {
            edits.push([node.start, node.end, imported(node)]);
        } else if (node.type === 'ImportExpression') {
            edits.push([node.start, node.start + 6, 'kexecImport']);
        }

        for (const child of Object.values(node).flat()) {
            if (child && typeof child.type === 'string') {
                visit(child);
            }
        }
    };

    visit(tree);
    edits.sort((a, b) => b[0] - a[0]);

    for (const [start, end, text] of edits) {
        const lines = code.slice(start, end).split('\n').length - 1;
        code = code.slice(0, start) + text + '\n'.repeat(lines) +
               code.slice(end);
    }

    return code;
};

// Modules are looked for from the working directory, which may change.

const fromHere = () => createRequire(path.join(process.cwd(), 'index.js'));

const hidden = (name, value) => Object.defineProperty(globalThis, name, {
    value, writable: true, configurable: true, enumerable: false,
});

hidden('require', Object.assign((name) => fromHere()(name),
                                { resolve: (...a) => fromHere().resolve(...a) }));

hidden('kexecImport', (name) => {
    const file = /^\.{0,2}\//.test(name) ? path.resolve(name) : name;

    try {
        return import(fromHere().resolve(file));
    } catch {
        return import(file);            // has no entry for require()
    }
});


// ---- results

class Bundle {
    constructor(data) {
        this.data = data;
    }
}

// IJavascript's way to say what a result is.

hidden('$$', {
    html: (html) => new Bundle({ 'text/html': String(html) }),
    svg: (svg) => new Bundle({ 'image/svg+xml': String(svg) }),
    png: (png) => new Bundle({ 'image/png': String(png) }),
    jpeg: (jpeg) => new Bundle({ 'image/jpeg': String(jpeg) }),
    mime: (data) => new Bundle(data),
});

const bundle = async (value) => {
    const display = value?.[Symbol.for('Jupyter.display')];

    if (value instanceof Bundle) {
        return value.data;
    }

    if (typeof display === 'function') {
        return await display.call(value);
    }

    if (value === undefined) {
        return null;
    }

    return {
        'text/plain': typeof value === 'string' ? value
                      : ownFrames(util.inspect(value)),
    };
};

// The frames from the inspector outwards are of no interest to the user.

const ownFrames = (text) => text.replace(
    /\n +at Session\.post \(node:inspector.*(\n +at .*)*/g, '');

const failure = (error) => {
    if (!(error instanceof Error)) {
        return { name: 'Error', value: util.inspect(error), traceback: [] };
    }

    return {
        name: String(error.name),
        value: String(error.message),
        traceback: ownFrames(String(error.stack)).split('\n'),
    };
};

const INTERRUPTED = {
    name: 'KeyboardInterrupt',
    value: '',
    traceback: [],
};


// ---- running

// The inspector's REPL mode has await at the top and lets names be declared
// again.

const session = new inspector.Session();
session.connect();

const post = (method, parameters) => new Promise((resolve, reject) => {
    session.post(method, parameters, (error, answer) => {
        if (error) {
            reject(error);
        } else {
            resolve(answer);
        }
    });
});

// A RemoteObject names a value of this process: a function that is called
// through the inspector gets the value itself.

let real;

const unwrap = async (remote) => {
    hidden('kexecReal', (value) => { real = value; });

    const { result } = await post('Runtime.evaluate',
                                  { expression: 'globalThis' });

    await post('Runtime.callFunctionOn', {
        objectId: result.objectId,
        functionDeclaration: '(value) => kexecReal(value)',
        arguments: [remote.objectId ? { objectId: remote.objectId }
                    : 'unserializableValue' in remote
                      ? { unserializableValue: remote.unserializableValue }
                      : { value: remote.value }],
    });

    await post('Runtime.releaseObjectGroup', { objectGroup: 'cell' });

    const value = real;
    real = undefined;

    return value;
};

let interrupt = null;

const evaluate = (expression) => {
    let answer;

    hidden('kexecRun', () => {
        answer = post('Runtime.evaluate', {
            expression, objectGroup: 'cell', replMode: true,
        });
    });

    // SIGINT ends the part that runs before the first await.

    vm.runInThisContext('kexecRun()', { breakOnSigint: true });

    // Later it can only end the waiting: what was awaited goes on.

    return Promise.race([
        answer,
        new Promise((_, reject) => { interrupt = () => reject(INTERRUPTED); }),
    ]);
};

const run = async (code) => {
    try {
        code = withoutImports(typescript ? withoutTypes(code) : code);

        const { result, exceptionDetails } = await evaluate(code);
        interrupt = null;

        const value = await unwrap(exceptionDetails?.exception ?? result);

        return exceptionDetails ? failure(value)
                                : { data: await bundle(value) };

    } catch (error) {
        return error === INTERRUPTED ||
               error?.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED'
            ? INTERRUPTED : failure(error);

    } finally {
        interrupt = null;
    }
};

process.on('SIGINT', () => interrupt?.());

// What fails outside of an execution must not end the process.

process.on('uncaughtException', (error) => {
    console.error(ownFrames(`Uncaught ${util.inspect(error)}`));
});

const writeAll = (text) => {
    const bytes = Buffer.from(text);

    for (let done = 0; done < bytes.length;) {
        done += fs.writeSync(REPLY, bytes, done);
    }
};

new net.Socket({ fd: REQUEST }).on('data', async () => {
    const answer = await run(fs.readFileSync(`/proc/self/fd/${CODE}`, 'utf8'));

    writeAll(JSON.stringify(answer) + '\n');

}).on('end', () => process.exit());
