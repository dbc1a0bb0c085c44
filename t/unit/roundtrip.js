// The cases of roundtrip.py in node: roundtrip.js JOB, see there.

const fs = require('fs'), vm = require('vm');
const job = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const {spawnSync} = require('child_process');
const real = process, problems = [], views = {};
const {Object, Reflect} = globalThis, world = globalThis;
const text = hex => Buffer.from(hex, 'hex').toString('utf8');
const has = name => Object.prototype.hasOwnProperty.call(real.env, name);
world.require = require;
let printed = 0;
console.log = () => { printed++; };
vm.runInThisContext(`
    let Object = 1, Function = 2, Symbol = 3, globalThis = 4, Reflect = 5;
    let a = 6, k = 7, e = 8, s = 9, P = 10, D = 11, n = 12, _ = 42;`);

function silent(code, what) {
    try {
        const value = vm.runInThisContext(code);
        if (value !== undefined) problems.push(what + ': value ' + value);
    } catch (error) {
        return error;
    }
}

const before = Reflect.ownKeys(world).length;

job.cases.forEach((c, number) => {
    const names = c.vars.map(v => text(v.name));
    const view = () => Object.fromEntries(names.map(
        name => [Buffer.from(name).toString('hex'), has(name)
                 ? Buffer.from(real.env[name]).toString('hex') : null]));
    names.forEach((name, i) => {
        delete real.env[name];
        if (c.vars[i].prior !== null) real.env[name] = text(c.vars[i].prior);
    });
    if (number % 11 == 3) world.process = 5;
    for (const code of c.set) {
        const error = silent(code, 'set');
        if (error) problems.push('case ' + number + ' set: ' + error.stack);
    }
    if (Object.keys(world).some(key => key.includes('kexec')))
        problems.push('case ' + number + ': priors are not hidden');
    views[number + ' set'] = view();
    if (number % 5 == 0 && number != 1) {
        const child = spawnSync('env', ['-0']).stdout;
        names.forEach((name, i) => {
            const line = Buffer.concat([Buffer.from(name + '='),
                                        Buffer.from(real.env[name] || '')]);
            if (!child.includes(line))
                problems.push('case ' + number + ': child has not ' + name);
        });
    }
    names.forEach((name, i) => {
        if (c.vars[i].change == 'delete') delete real.env[name];
        if (c.vars[i].change == 'set') real.env[name] = text(c.vars[i].changed);
    });
    const env = real.env;
    if (number % 7 == 0) real.env = {...env};
    if (number % 13 == 4) world.process = 5;
    const error = silent(c.restore, 'restore');
    if (error) problems.push('case ' + number + ' restore: ' + error.stack);
    world.process = real;
    if (number % 7 == 0) {
        const copy = real.env;
        real.env = env;
        // an object's own __proto__ cannot be assigned
        for (const name of names.filter(name => name != '__proto__'))
            if (Object.hasOwn(copy, name) != has(name)
                || has(name) && copy[name] != env[name])
                problems.push('case ' + number + ': copy keeps ' + name);
    }
    views[number + ' restored'] = view();
    if (Reflect.ownKeys(world).length != before)
        problems.push('case ' + number + ' changed the namespace');
});

const x = job.extra;
for (const code of [x.restore, x.restore, x.plain, x.restore])
    if (silent(code, 'extra')) problems.push('failed: ' + code);
if (process.env.PLAIN !== '1') problems.push('a plain set was restored');
fs.mkdirSync('a \'"\\\n%x');
if (silent(x.cwd, 'cwd') || !process.cwd().endsWith('\n%x'))
    problems.push('cwd failed');
if (!silent(x.bad_cwd, 'cwd')) problems.push('a bad cwd is no error');
if (vm.runInThisContext('_') !== 42) problems.push('_ changed');
if (printed) problems.push('printed');
real.stdout.write(JSON.stringify({views, problems}));
