// From the user's code to the script that node is given.  Every line stays the
// line that it was, so that stacks and syntax errors name the user's.

'use strict';

const { SourceMap } = require('module');
const { argv } = require('process');

const typescript = argv[2] === 'typescript';

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

// An error that is told to the user as it is.

class Refused {
    constructor(name, value, traceback = '') {
        this.name = name;
        this.value = value;
        this.traceback = traceback ? [traceback] : [];
    }
}

// Lines and columns are counted from 0 here, and from 1 where they are told.

const placed = (message, line, column) =>
    `${message} (${line + 1}:${column + 1})`;

const snippet = (code, line, column) => {
    const text = code.split('\n')[line] ?? '';

    return `<anonymous>:${line + 1}:${column + 1}\n${text}\n` +
           `${text.slice(0, column).replace(/\S/g, ' ')}^\n\n`;
};


// ---- TypeScript

// Types become blanks.  What is more than types (enum, namespace) is
// translated, which moves things to other lines.

const withoutTypes = (code) => {
    if (!amaro) {
        throw new Refused('Error', 'TypeScript needs the npm package amaro');
    }

    try {
        return amaro.transformSync(code, { mode: 'strip-only' }).code;

    } catch (error) {
        if (error.code !== 'UnsupportedSyntax') {
            throw syntaxError(error, code);
        }
    }

    try {
        return onTheirLines(amaro.transformSync(code, {
            mode: 'transform', sourceMap: true,
        }));

    } catch (error) {
        throw syntaxError(error, code);
    }
};

const syntaxError = (error, code) => {
    if (!error.startLine) {
        return error;
    }

    const [line, column] = [error.startLine - 1, error.startColumn];
    const value = placed(error.message, line, column);

    return new Refused('SyntaxError', value, snippet(code, line, column) +
                                             `SyntaxError: ${error.message}`);
};

// The tokens of a translation are put back on the lines that its source map
// names.  A line break can change what JavaScript means ("return"), so what
// comes out must have the same syntax tree, else the translation stays as it
// is.

const grammar = {
    ecmaVersion: 'latest',
    sourceType: 'module',
    allowAwaitOutsideFunction: true,
    allowReturnOutsideFunction: true,
};

const onTheirLines = ({ code, map }) => {
    try {
        const moved = moveTokens(code, new SourceMap(JSON.parse(map)));

        return shape(moved) === shape(code) ? moved : code;

    } catch {
        return code;                    // node says better what is wrong
    }
};

const shape = (code) => JSON.stringify(
    acorn.parse(code, grammar),
    (key, value) => key === 'start' || key === 'end' ? undefined
                    : typeof value === 'bigint' ? `${value}n` : value);

const moveTokens = (code, map) => {
    const tokens = [];
    let moved = '';
    let line = 0;
    let end = 0;

    acorn.parse(code, { ...grammar, locations: true, onToken: tokens });

    for (const token of tokens) {
        const { line: at, column } = token.loc.start;
        const wanted = map.findEntry(at - 1, column).originalLine ?? 0;
        const gap = code.slice(end, token.start);
        const inTemplate = token.type === acorn.tokTypes.template ||
                           moved.endsWith('`');

        // Comments go, they may end a line; so does a gap's own line break.

        if (wanted > line && !inTemplate) {
            moved += '\n'.repeat(wanted - line);
            line = wanted;
        } else if (gap) {
            moved += ' ';
        }

        const text = code.slice(token.start, token.end);

        moved += text;
        line += text.split('\n').length - 1;
        end = token.end;
    }

    return moved;
};


// ---- import

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

    const attributes = (node.attributes ?? []).map(({ key, value }) =>
        `${key.name ?? key.raw}: ${value.raw}`);

    const from = node.source.raw + (attributes.length
        ? `, { with: { ${attributes.join(', ')} } }` : '');

    const module = `await kexecImport(${from})`;

    if (all && names.length) {
        return `${all}${module}, { ${names.join(', ')} } = ${module};`;
    }

    return names.length ? `const { ${names.join(', ')} } = ${module};`
                        : `${all || 'void '}${module};`;
};

const withoutImports = (code) => {
    const edits = [];
    let tree;

    if (!acorn || !/\bimport\b/.test(code)) {
        return code;
    }

    try {
        tree = acorn.parse(code, grammar);
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

const toScript = (code) =>
    withoutImports(typescript ? withoutTypes(code) : code);

module.exports = { placed, Refused, snippet, toScript };
