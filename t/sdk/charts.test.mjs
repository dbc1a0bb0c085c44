// Rich results of python's libraries: charts, data, images.

import assert from 'node:assert/strict';
import test from 'node:test';
import { run } from './lib.mjs';

const isPng = (result) => {
    const png = Buffer.from(result.png, 'base64');
    assert.deepEqual(png.subarray(0, 8), Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'));
    assert.equal(png.subarray(-8, -4).toString(), 'IEND');
};

const only = async (code) => {
    const { results, error } = await run('python', code);
    assert.equal(error, undefined);
    assert.equal(results.length, 1);
    return results[0];
};

const plot = async (code) => {
    const result = await only(`import matplotlib.pyplot as plt\n${code}\nplt.show()`);
    isPng(result);
    return result.chart;
};

test('a plot is a PNG and a chart', async () => {
    const result = await only('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()');
    isPng(result);
    assert.equal(result.chart.type, 'line');
    assert.equal(result.isMainResult, false);
});

test('a figure that is the result is one, too', async () => {
    const result = await only(`import matplotlib.pyplot as plt
fig, ax = plt.subplots(); ax.plot([1, 2]); plt.close(fig)
fig`);
    isPng(result);
    assert.equal(result.chart.type, 'line');
    assert.equal(result.isMainResult, true);
});

test('line', async () => {
    const chart = await plot(`plt.plot([0, 1, 2], [1, 4, 9], label="squares"); plt.title("T")
plt.xlabel("Time (s)"); plt.ylabel("Length [m]")`);
    assert.deepEqual(
        [chart.type, chart.title, chart.x_label, chart.y_label, chart.x_unit, chart.y_unit, chart.x_scale],
        ['line', 'T', 'Time (s)', 'Length [m]', 's', 'm', 'linear']);
    assert.deepEqual(chart.elements, [{ label: 'squares', points: [[0, 1], [1, 4], [2, 9]] }]);
    assert.equal(chart.x_ticks.length, chart.x_tick_labels.length);
});

test('scatter', async () => {
    const chart = await plot('plt.scatter([1, 2], [3, 4], label="dots")');
    assert.equal(chart.type, 'scatter');
    assert.deepEqual(chart.elements, [{ label: 'dots', points: [[1, 3], [2, 4]] }]);
});

test('bar', async () => {
    const chart = await plot('plt.bar(["a", "b"], [1, 2], label="g")');
    assert.equal(chart.type, 'bar');
    assert.deepEqual(chart.elements, [{ label: 'a', group: 'g', value: 1 }, { label: 'b', group: 'g', value: 2 }]);
});

test('pie', async () => {
    const chart = await plot('plt.pie([1, 3], labels=["a", "b"])');
    assert.equal(chart.type, 'pie');
    assert.deepEqual(chart.elements.map(({ label, angle, radius }) => [label, Math.round(angle), radius]),
                     [['a', 90, 1], ['b', 270, 1]]);
});

test('box and whisker', async () => {
    const chart = await plot('plt.boxplot([[1, 2, 3, 4, 5, 20]]); plt.xticks([1], ["a"])');
    assert.equal(chart.type, 'box_and_whisker');
    const [box] = chart.elements;
    assert.deepEqual([box.label, box.min, box.first_quartile, box.median, box.third_quartile, box.max, box.outliers],
                     ['a', 1, 2.25, 3.5, 4.75, 5, [20]]);
});

test('several axes are a superchart', async () => {
    const chart = await plot('fig, (a, b) = plt.subplots(1, 2); fig.suptitle("S"); a.plot([1, 2]); b.bar(["x"], [1])');
    assert.deepEqual([chart.type, chart.title, chart.elements.map(({ type }) => type)],
                     ['superchart', 'S', ['line', 'bar']]);
});

test('what is no chart that is known', async () => {
    assert.equal((await plot('plt.imshow([[1, 2], [3, 4]])')).type, 'unknown');
});

for (const [scale, code, first] of [
    ['log', 'plt.plot([1, 10], [1, 2]); plt.xscale("log")', 1],
    ['categorical', 'plt.plot(["p", "q"], [1, 2])', 'p'],
    ['datetime', 'import datetime; plt.plot([datetime.datetime(2024, 1, d) for d in (1, 2)], [1, 2])',
     /^2024-01-01T00:00:00/],
]) {
    test(`an axis that is ${scale}`, async () => {
        const chart = await plot(code);
        assert.deepEqual([chart.x_scale, chart.y_scale], [scale, 'linear']);
        const [[x]] = chart.elements[0].points;
        if (first instanceof RegExp) assert.match(x, first);
        else assert.equal(x, first);
    });
}

test('a DataFrame has data', async () => {
    const result = await only(`import pandas as pd
pd.DataFrame({"n": [1, 2], "s": ["x", "y"], "t": pd.to_datetime(["2024-01-01", None]), "f": [0.5, float("nan")]})`);
    assert.deepEqual([result.data.n, result.data.s, result.data.f], [[1, 2], ['x', 'y'], [0.5, null]]);
    assert.match(result.data.t[0], /^2024-01-01T00:00:00/);
    assert.equal(result.data.t[1], null);
    assert.match(result.html, /<table/);
    assert(result.formats().includes('data'));
});

test('a list and a dict have json', async () => {
    assert.deepEqual((await only('[1, "a", None, 2.5]')).json, [1, 'a', null, 2.5]);
    assert.deepEqual((await only('import numpy; {"n": numpy.int64(1), 2: [True]}')).json, { n: 1, 2: [true] });
});

test('an image of PIL is a PNG', async () => {
    isPng(await only('from PIL import Image\nImage.new("RGB", (2, 2), "red")'));
});

test('a long sequence is whole', async () => {
    assert.equal((await only('list(range(5000))')).text.split(',').length, 5000);
});

test('no colours in tracebacks', async () => {
    const { error } = await run('python', '1 / 0');
    assert.match(error.traceback, /ZeroDivisionError: division by zero/);
    assert.doesNotMatch(error.traceback, /\x1b/);
});
