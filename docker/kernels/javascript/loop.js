// The node of the kernels for JavaScript and TypeScript.  The user's code has
// this realm, its globals and prototypes, to change as it likes; what runs it
// (kernel.js) lives in a realm of its own, and gets here what it needs of this
// one before any code of the user's has run.

'use strict';

const fs = require('fs');
const { createRequire, builtinModules } = require('module');
const path = require('path');
const vm = require('vm');

const realm = vm.createContext({ Buffer, URL });

const load = (file, ...more) => {
    const module = { exports: {} };

    const run = vm.compileFunction(
        fs.readFileSync(file, 'utf8'), ['module', 'exports', 'require', 'user'],
        { filename: file, parsingContext: realm });

    const { resolve } = createRequire(file);

    run(module, module.exports, (name) => {
        const found = resolve(name);

        return path.isAbsolute(found) ? load(found) : require(found);
    }, ...more);

    return module.exports;
};


// ---- what the user's code finds besides node's own

const hide = ((define, target) => (name, value) => define(target, name, {
    value, writable: true, configurable: true, enumerable: false,
}))(Object.defineProperty, globalThis);

// Modules are looked for from the working directory, which may change.

const { cwd } = process;
const { join, resolve } = path;
const fromHere = () => createRequire(join(cwd(), 'index.js'));
const isPath = RegExp.prototype.test.bind(/^\.{0,2}\//);

hide('require', Object.assign((name) => fromHere()(name),
                              { resolve: (...a) => fromHere().resolve(...a) }));

const importFromHere = (name, options) => {
    const file = isPath(name) ? resolve(name) : name;
    let url;

    try {
        url = fromHere().resolve(file);
    } catch {
        url = file;                     // has no entry for require()
    }

    return options ? import(url, options) : import(url);
};

class Bundle {
    constructor(data) {
        this.data = data;
    }
}

// IJavascript's way to say what a result is.

hide('$$', {
    html: (html) => new Bundle({ 'text/html': String(html) }),
    svg: (svg) => new Bundle({ 'image/svg+xml': String(svg) }),
    png: (png) => new Bundle({ 'image/png': String(png) }),
    jpeg: (jpeg) => new Bundle({ 'image/jpeg': String(jpeg) }),
    mime: (data) => new Bundle(data),
});


// Standard input is at its end, where node would wait for an answer for ever.

for (const { prototype } of [require('readline').Interface,
                             require('readline/promises').Interface]) {
    const { question } = prototype;

    prototype.question = Object.assign(function (...asked) {
        if (this.input === process.stdin) {
            throw new Error('the code asks for input, and there is nobody ' +
                            'to ask');
        }

        return question.apply(this, asked);
    }, question);
}


// ---- what kernel.js needs of this realm

load(join(__dirname, 'kernel.js'), {
    hide,
    Bundle,
    console,
    Error,
    global: globalThis,
    holder: {},
    importFromHere,
    Object,
    realm,                              // is gone with its last reference

    // Waits as this realm does, whatever has become of its promises' methods.

    settle: async (value, resolve, reject) => {
        try {
            value = await value;
        } catch (error) {
            reject(error);
            return;
        }

        resolve(value);
    },
});
