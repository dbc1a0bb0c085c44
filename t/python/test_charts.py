#!/usr/bin/python3
"""What a chart says of a figure: drawn here, and known from what was drawn."""

import datetime
import json
import os
import sys
import unittest
import warnings

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "docker", "kernels", "python3"))

import matplotlib                       # noqa: E402

matplotlib.use("agg")

import matplotlib.pyplot as plt         # noqa: E402
from matplotlib.offsetbox import AnchoredText   # noqa: E402
import numpy as np                      # noqa: E402
import pandas as pd                     # noqa: E402

from kexec_display.charts import figure_chart   # noqa: E402

DAYS = [datetime.date(2024, 1, day) for day in (1, 2, 3)]
SCORES = {"A": [85, 90, 78, 92, 88], "B": [95, 89, 76, 91, 84, 87], "C": [75, 82, 88, 79, 86]}
BOXES = [("A", 78, 85, 88, 90, 92, []), ("B", 84, 84.75, 88, 90.5, 95, [76]), ("C", 75, 79, 82, 86, 88, [])]


class ChartTest(unittest.TestCase):
    def setUp(self):
        self.figure, self.ax = plt.subplots()
        self.addCleanup(plt.close, "all")
        catcher = warnings.catch_warnings()
        catcher.__enter__()
        self.addCleanup(catcher.__exit__, None, None, None)
        warnings.simplefilter("error", UserWarning)

    def chart(self):
        chart = figure_chart(plt.gcf())
        json.dumps(chart, allow_nan=False)
        return chart

    def elements(self, kind):
        chart = self.chart()
        self.assertEqual(chart["type"], kind)
        return chart["elements"]


class Figures(ChartTest):
    def test_empty(self):
        self.assertEqual(self.chart(), {})

    def test_no_axes(self):
        self.assertEqual(figure_chart(plt.figure()), {})

    def test_superchart(self):
        figure, axes = plt.subplots(2, 2)
        figure.suptitle("All")
        axes[0][0].plot([1, 2])
        axes[0][1].scatter([1], [2])
        axes[1][0].pie([1, 2])
        axes[1][1].add_artist(plt.Circle((0, 0), 1))
        chart = self.chart()
        self.assertEqual((chart["type"], chart["title"]), ("superchart", "All"))
        self.assertEqual([c["type"] for c in chart["elements"]], ["line", "scatter", "pie", "unknown"])

    def test_superchart_without_title_and_data(self):
        _, axes = plt.subplots(1, 2)
        axes[0].plot([1, 2])
        chart = self.chart()
        self.assertEqual(chart["title"], "")
        self.assertEqual(chart["elements"][1]["elements"], [])

    def test_unknown(self):
        self.ax.set_title("Circles")
        self.ax.grid(True)
        self.ax.add_artist(plt.Circle((0, 0), 1))
        self.assertEqual(self.chart(), {"type": "unknown", "title": "Circles", "elements": []})

    def test_unknown_kinds(self):
        draw = {
            "image": lambda ax: ax.imshow([[1, 2], [3, 4]]),
            "contour": lambda ax: ax.contourf([[1, 2], [3, 4]]),
            "area": lambda ax: ax.fill_between([1, 2], [1, 2]),
            "mixed": lambda ax: (ax.plot([1, 2, 3]), ax.scatter([1], [2])),
            "text in a box": lambda ax: (ax.plot([1, 2]), ax.add_artist(AnchoredText("a", "center"))),
            "three axes": lambda ax: plt.figure().add_subplot(projection="3d").plot([1, 2], [1, 2], [1, 2]),
            "points in space": lambda ax: plt.figure().add_subplot(projection="3d").scatter([1, 2], [1, 2], [1, 2]),
            "table": lambda ax: (ax.plot([1, 2]), ax.table([["a"]])),
            "path": lambda ax: (ax.add_patch(matplotlib.patches.PathPatch(matplotlib.path.Path([[0, 0], [1, 1]]))),
                                ax.plot([1, 2])),
        }
        for name, function in draw.items():
            with self.subTest(name):
                plt.close("all")
                function(plt.gca())
                self.assertEqual(self.chart()["type"], "unknown")

    def test_what_cannot_be_told_is_unknown(self):
        line, = self.ax.plot([1, 2, 3])
        line.get_label = None
        self.assertEqual(self.chart(), {"type": "unknown", "title": None, "elements": []})


class Labels(ChartTest):
    def test_members(self):
        self.ax.plot([1, 2, 3])
        self.assertEqual(list(self.chart()), [
            "type", "title", "elements", "x_label", "y_label", "x_unit", "y_unit",
            "x_ticks", "x_tick_labels", "x_scale", "y_ticks", "y_tick_labels", "y_scale"])

    def test_none(self):
        self.ax.plot([1, 2, 3])
        chart = self.chart()
        self.assertEqual([chart[n] for n in ("title", "x_label", "y_label", "x_unit", "y_unit")], [None] * 5)

    def test_title_labels_units(self):
        self.ax.plot([1, 2, 3])
        self.ax.set(title="T", xlabel="Time (s)", ylabel="Amplitude [Hz]")
        chart = self.chart()
        self.assertEqual([chart[n] for n in ("title", "x_label", "y_label", "x_unit", "y_unit")],
                         ["T", "Time (s)", "Amplitude [Hz]", "s", "Hz"])

    def test_units(self):
        self.ax.plot([1, 2, 3])
        for label, unit in (("f(x)", None), ("f(x) (m)", "m"), ("a (b) [c]", "b"), ("a []", ""), ("[m]", "m")):
            with self.subTest(label):
                self.ax.set_xlabel(label)
                self.assertEqual(self.chart()["x_unit"], unit)


class Lines(ChartTest):
    def test_points(self):
        self.ax.plot([1, 2, 3], [4, 5, 6], label="named")
        self.ax.plot([True, False], [np.float32(1), 2.5])
        self.assertEqual(self.elements("line"), [
            {"label": "named", "points": [[1, 4], [2, 5], [3, 6]]},
            {"label": "Line 1", "points": [[1, 1], [0, 2.5]]}])

    def test_what_is_no_number(self):
        self.ax.plot(np.ma.masked_array([1.0, 2, np.nan, np.inf, 5], [0, 1, 0, 0, 0]))
        self.assertEqual([y for _, y in self.elements("line")[0]["points"]], [1, None, None, None, 5])

    def test_lines_of_a_grid(self):
        self.ax.plot([1, 2, 3])
        self.ax.axhline(2)
        self.ax.axvline(2, 0.1, 0.5)
        self.assertEqual(len(self.elements("line")), 1)

    def test_flat_and_upright(self):
        self.ax.plot([1, 2], [3, 3])
        self.ax.plot([1, 1], [3, 4])
        self.assertEqual([e["points"] for e in self.elements("line")], [[[1, 3], [2, 3]], [[1, 3], [1, 4]]])

    def test_error_bars(self):
        self.ax.errorbar([1, 2], [3, 4], yerr=[.1, .2], xerr=.1, capsize=3, label="named")
        self.ax.errorbar([1, 2], [5, 6], yerr=[.1, .2])
        self.assertEqual([e["points"] for e in self.elements("line")], [[[1, 3], [2, 4]], [[1, 5], [2, 6]]])
        self.assertEqual([e["label"] for e in self.elements("line")], ["named", "Line 1"])

    def test_ticks(self):
        self.ax.plot([0, 10], [0, 1])
        self.ax.set_xticks([0, 5, 10])
        chart = self.chart()
        self.assertEqual((chart["x_ticks"], chart["x_tick_labels"]), ([0, 5, 10], ["0", "5", "10"]))
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("linear", "linear"))

    def test_no_ticks(self):
        self.ax.plot([0, 10])
        self.ax.set_xticks([])
        self.assertEqual(self.chart()["x_ticks"], [])

    def test_scales(self):
        self.ax.plot([1, 2, 3], [.1, .5, .9])
        for scale in ("log", "symlog", "logit"):
            with self.subTest(scale):
                self.ax.set_yscale(scale)
                chart = self.chart()
                self.assertEqual((chart["x_scale"], chart["y_scale"]), ("linear", scale))
                self.assertTrue(all(type(tick) is float for tick in chart["y_ticks"]))
                self.assertTrue(all(type(label) is str for label in chart["y_tick_labels"]))

    def test_categories(self):
        self.ax.plot([1, 2, 3], ["a", "b", "c"])
        chart = self.chart()
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("linear", "categorical"))
        self.assertEqual((chart["y_ticks"], chart["y_tick_labels"]), ([0, 1, 2], ["a", "b", "c"]))
        self.assertEqual(chart["elements"][0]["points"], [[1, "a"], [2, "b"], [3, "c"]])


class Dates(ChartTest):
    def check(self, first="2024-01-01"):
        chart = self.chart()
        self.assertEqual((chart["x_scale"], chart["y_scale"]), ("datetime", "linear"))
        self.assertTrue(chart["x_ticks"])
        for tick in chart["x_ticks"]:
            moment = datetime.datetime.fromisoformat(tick)
            self.assertEqual(moment.utcoffset(), datetime.timedelta(0))
            self.assertIn(moment.year, (2023, 2024))
        self.assertEqual(chart["elements"][0]["points"][0][0], first)

    def test_days(self):
        self.ax.plot(DAYS, [1, 2, 3])
        self.check()

    def test_seconds(self):
        self.ax.plot([datetime.datetime(2024, 1, 1, 0, 0, s) for s in (1, 2)], [1, 2])
        self.check("2024-01-01T00:00:01")

    def test_numpy(self):
        self.ax.plot(np.array(DAYS, "datetime64[ns]"), [1, 2, 3])
        self.check("2024-01-01T00:00:00")

    def test_nothing(self):
        self.ax.plot(np.array(["2024-01-01", "NaT"], "datetime64[ns]"), [1, 2])
        self.assertEqual(self.elements("line")[0]["points"][1], [None, 2])

    def test_pandas_regular(self):
        pd.Series([1, 2, 3], pd.date_range("2024-01-01", periods=3)).plot()
        self.check("2024-01-01T00:00:00")

    def test_pandas_months(self):
        pd.Series([1, 2, 3], pd.period_range("2024-01", periods=3, freq="M")).plot()
        self.check("2024-01-01T00:00:00")

    def test_pandas_irregular(self):
        pd.Series([1, 2, 3], pd.to_datetime(["2024-01-01", "2024-01-03", "2024-01-09"])).plot()
        self.check("2024-01-01T00:00:00")


class Scatter(ChartTest):
    def test_groups(self):
        self.ax.scatter([1, 2], [3, 4], label="one")
        self.ax.scatter([5], [6])
        self.ax.grid(True)
        self.ax.axvline(3)
        self.assertEqual(self.elements("scatter"), [{"label": "one", "points": [[1, 3], [2, 4]]},
                                                    {"label": "_child1", "points": [[5, 6]]}])

    def test_what_is_no_number(self):
        self.ax.scatter([1, 2], [np.nan, 4])
        self.assertEqual(self.elements("scatter")[0]["points"], [[None, None], [2, 4]])


    def test_error_bars(self):
        self.ax.scatter([1, 2], [3, 4])
        self.ax.errorbar([1, 2], [3, 4], yerr=.5, fmt="none", capsize=2)
        self.assertEqual(self.elements("scatter")[0]["points"], [[1, 3], [2, 4]])

    def test_dates(self):
        self.ax.scatter(DAYS, [1, 2, 3])
        self.assertEqual(self.chart()["x_scale"], "datetime")
        self.assertEqual(self.elements("scatter")[0]["points"],
                         [["2024-01-01T00:00:00", 1], ["2024-01-02T00:00:00", 2], ["2024-01-03T00:00:00", 3]])

    def test_times_and_none(self):
        self.ax.scatter([1, 2], np.array(["2024-01-01T12:34:56", "NaT"], "datetime64[s]"))
        self.assertEqual(self.elements("scatter")[0]["points"][0], [1, "2024-01-01T12:34:56"])
        self.assertIsNone(self.elements("scatter")[0]["points"][1][1])

    def test_categories(self):
        self.ax.scatter(["a", "b", "a"], ["u", "v", "v"])
        self.ax.scatter(["c"], ["u"])
        self.assertEqual([e["points"] for e in self.elements("scatter")],
                         [[["a", "u"], ["b", "v"], ["a", "v"]], [["c", "u"]]])


class Pies(ChartTest):
    def test_angles(self):
        self.ax.pie([90, 10], labels=["No", "Yes"], autopct="%1.1f%%", startangle=90)
        self.assertEqual(self.elements("pie"), [{"label": "No", "angle": 324, "radius": 1},
                                                {"label": "Yes", "angle": 36, "radius": 1}])

    def test_clockwise_and_nothing(self):
        self.ax.pie([1, 0, 2], counterclock=False, radius=2)
        self.assertEqual([(e["angle"], e["radius"]) for e in self.elements("pie")], [(120, 2), (0, 2), (240, 2)])


class Bars(ChartTest):
    def bars(self):
        return [(e["label"], e["group"], e["value"]) for e in self.elements("bar")]

    def test_standing(self):
        self.ax.bar(["a", "b"], [1, 2], label="g")
        self.ax.axhline(1.5)
        self.assertEqual(self.bars(), [("a", "g", 1), ("b", "g", 2)])

    def test_lying(self):
        self.ax.barh(["a", "b"], [1, 2])
        self.ax.barh(["a", "b"], [3, 4], left=[1, 2])
        self.ax.set(xlabel="value (m)", ylabel="name")
        self.assertEqual(self.bars(), [("a", "Group 0", 1), ("b", "Group 0", 2),
                                       ("a", "Group 1", 3), ("b", "Group 1", 4)])
        chart = self.chart()
        self.assertEqual([chart[n] for n in ("x_label", "y_label", "x_unit", "y_unit")],
                         ["name", "value (m)", None, "m"])

    def test_all_equal(self):
        self.ax.bar(["a", "b"], [2, 2])
        self.assertEqual(self.bars(), [("a", "Group 0", 2), ("b", "Group 0", 2)])

    def test_stacked_in_part(self):
        self.ax.bar(["a", "b", "c"], [1, 2, 3])
        self.ax.bar(["b", "c"], [4, 5], bottom=[2, 3])
        self.assertEqual(self.bars()[3:], [("b", "Group 1", 4), ("c", "Group 1", 5)])

    def test_grouped(self):
        x = np.arange(2)
        self.ax.bar(x - .2, [1, 2], .4, label="m")
        self.ax.bar(x + .2, [3, 4], .4, label="w")
        self.ax.set_xticks(x)
        self.ax.set_xticklabels(["a", "b"])
        self.assertEqual(self.bars(), [("a", "m", 1), ("b", "m", 2), ("a", "w", 3), ("b", "w", 4)])

    def test_numbers(self):
        self.ax.bar([2019, 2020, 2021], [1, 2, 3])
        self.assertEqual([label for label, _, _ in self.bars()], ["2019", "2020", "2021"])

    def test_dates(self):
        self.ax.bar(DAYS, [1, 2, 3])
        self.assertEqual([label for label, _, _ in self.bars()], ["2024-01-01", "2024-01-02", "2024-01-03"])

    def test_dates_in_a_format(self):
        self.ax.bar(DAYS, [1, 2, 3])
        self.ax.xaxis.set_major_formatter(matplotlib.dates.DateFormatter("%d.%m."))
        self.assertEqual([label for label, _, _ in self.bars()], ["01.01.", "02.01.", "03.01."])

    def test_histogram(self):
        self.ax.hist([1, 2, 2, 4], bins=[0, 1.5, 3, 4.5])
        self.assertEqual([(label, value) for label, _, value in self.bars()], [("0.75", 1), ("2.25", 2), ("3.75", 1)])

    def test_bins_without_end(self):
        self.ax.hist([1, 2, 2, 4], bins=[-np.inf, 1.5, 3, np.inf])
        self.assertEqual([(label, value) for label, _, value in self.bars()], [("2.25", 2)])

    def test_nothing(self):
        self.ax.bar([1, np.nan, 3], [1, 2, np.nan])
        self.assertEqual([(label, value) for label, _, value in self.bars()], [("1", 1), ("3", None)])

    def test_error_bars(self):
        for capsize in (0, 4):
            with self.subTest(capsize=capsize):
                self.ax.clear()
                self.ax.bar(["a", "b"], [1, 2], yerr=[.1, .2], capsize=capsize, label="g")
                self.assertEqual(self.bars(), [("a", "g", 1), ("b", "g", 2)])
                self.ax.clear()
                self.ax.barh(["a", "b"], [1, 2], xerr=[.1, .2], capsize=capsize, label="g")
                self.assertEqual(self.bars(), [("a", "g", 1), ("b", "g", 2)])

    def test_line_from_side_to_side(self):
        self.ax.bar(["a", "b"], [1, 2])
        self.ax.plot([0, 1], [1.5, 1.5])
        self.assertEqual(len(self.bars()), 2)

    def test_pandas(self):
        pd.DataFrame({"u": [1, 2], "v": [3, 4]}, ["a", "b"]).plot.barh()
        self.assertEqual(self.bars(), [("a", "u", 1), ("b", "u", 2), ("a", "v", 3), ("b", "v", 4)])


class Boxes(ChartTest):
    def boxes(self):
        return [(e["label"], e["min"], e["first_quartile"], e["median"], e["third_quartile"], e["max"], e["outliers"])
                for e in self.elements("box_and_whisker")]

    def draw(self, data=tuple(SCORES.values()), names=tuple(SCORES), **options):
        self.ax.boxplot(list(data), **options)
        if names:
            axis = self.ax.xaxis if options.get("vert", True) else self.ax.yaxis
            axis.set_ticklabels(names)

    def test_patches(self):
        self.draw(patch_artist=True)
        self.assertEqual(self.boxes(), BOXES)

    def test_lines(self):
        self.draw()
        self.assertEqual(self.boxes(), BOXES)

    def test_one_over_the_other(self):
        self.draw(names=None)
        self.draw(names=None, patch_artist=True)
        self.assertEqual([box[1:-1] for box in self.boxes()], [box[1:-1] for box in BOXES])

    def test_lying(self):
        warnings.simplefilter("ignore")     # a later matplotlib has another word for it
        for patch in (False, True):
            with self.subTest(patch=patch):
                self.ax.clear()
                self.ax.set(xlabel="score", ylabel="class")
                self.draw(vert=False, patch_artist=patch)
                self.assertEqual(self.boxes(), BOXES)
                self.assertEqual((self.chart()["x_label"], self.chart()["y_label"]), ("class", "score"))

    def test_one_box_alone(self):
        self.draw([[1, 2, 3, 4, 9]], None, patch_artist=True)
        self.assertEqual(self.boxes(), [("1", 1, 2, 3, 4, 4, [9])])

    def test_more_outliers(self):
        self.draw([[1, 2, 3, 2, 1, 2, 3, 20, 22, -15], [2, 3, 2, 1, 2, 3, 20, 21]], None)
        self.assertEqual([box[-1] for box in self.boxes()], [[-15, 20, 22], [20, 21]])

    def test_whiskers_without_length(self):
        self.draw([[1, 1, 1, 1], [1, 2, 2, 2, 3]], None, patch_artist=True)
        self.assertEqual(self.boxes(), [("1", 1, 1, 1, 1, 1, []), ("2", 2, 2, 2, 2, 2, [1, 3])])

    def test_mean_is_neither_median_nor_outlier(self):
        for meanline in (False, True):
            with self.subTest(meanline=meanline):
                self.ax.clear()
                self.draw([[1, 2, 3, 2, 1, 2, 3, 20], [2, 3, 4]], None, showmeans=True, meanline=meanline)
                self.assertEqual(self.boxes(), [("1", 1, 1.75, 2, 3, 3, [20]), ("2", 2, 2.5, 3, 3.5, 4, [])])

    def test_lines_beside_the_boxes(self):
        self.draw(names=None)
        self.ax.axvline(1)
        self.ax.axhline(80)
        self.assertEqual([box[1:] for box in self.boxes()], [box[1:] for box in BOXES])

    def test_notches(self):
        for patch in (False, True):
            with self.subTest(patch=patch):
                self.ax.clear()
                self.draw([range(101)], None, notch=True, patch_artist=patch)
                self.assertEqual(self.boxes(), [("1", 0, 25, 50, 75, 100, [])])

    def test_notches_beyond_the_box(self):
        warnings.simplefilter("ignore")     # a later matplotlib has another word for vert
        for lying in (False, True):
            for patch in (False, True):
                with self.subTest(lying=lying, patch=patch):
                    self.ax.clear()
                    self.draw([[1, 2, 3, 4, 9], [2, 3, 4, 5, 6], [1, 2, 2, 3, 9]], None, notch=True,
                              patch_artist=patch, vert=not lying, showmeans=True, meanline=True)
                    self.assertEqual(self.boxes(), [("1", 1, 2, 3, 4, 4, [9]), ("2", 2, 3, 4, 5, 6, []),
                                                    ("3", 1, 2, 2, 3, 3, [9])])

    def test_large_values_are_exact(self):
        self.draw([[12345.67, 23456.78, 34567.89]], None)
        self.assertEqual(self.boxes()[0][3], 23456.78)

    def test_pandas(self):
        pd.DataFrame({"a": [1, 2, 3, 9], "b": [2, 3, 4, 8]}).plot.box()
        self.assertEqual(self.boxes(), [("a", 1, 1.75, 2.5, 4.5, 4.5, [9]), ("b", 2, 2.75, 3.5, 5, 8, [])])

    def test_a_rectangle_is_a_line(self):
        self.ax.plot([0, 1, 1, 0, 0], [0, 0, 1, 1, 0])
        self.assertEqual(len(self.elements("line")), 1)


if __name__ == "__main__":
    unittest.main()
