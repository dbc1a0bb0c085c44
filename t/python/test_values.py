#!/usr/bin/python3
"""Lists, dicts and DataFrames as JSON."""

import collections
import dataclasses
import datetime
import decimal
import enum
import json
import os
import sys
import unittest
import uuid

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "docker", "kernels", "python3"))

import numpy as np                      # noqa: E402
import pandas as pd                     # noqa: E402

from kexec_display.values import frame_data, json_value     # noqa: E402

UTC = datetime.timezone.utc


class Color(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    x: int
    tags: list


def nested(depth):
    value = []
    for _ in range(depth - 1):
        value = [value]
    return value


class Values(unittest.TestCase):
    def check(self, *pairs):
        for value, expected in pairs:
            with self.subTest(value):
                found = json_value(value)
                self.assertEqual(json.dumps(found, allow_nan=False), json.dumps(expected))

    def test_plain(self):
        self.check(([], []), ({}, {}), ([1, "a", None, 2.5, True], [1, "a", None, 2.5, True]), ([(1, 2)], [[1, 2]]),
                   (["\u00e9\0"], ["\u00e9\0"]), ([2**70], [2**70]),
                   (collections.OrderedDict(b=1, a=2), {"b": 1, "a": 2}))

    def test_what_is_no_number(self):
        self.check(([float("nan"), float("inf"), -float("inf")], [None] * 3), ([np.array([np.nan, 1])], [[None, 1.0]]))

    def test_keys(self):
        self.check(({1: 1, 2.5: 2, None: 3}, {"1": 1, "2.5": 2, "null": 3}), ({True: 1}, {"true": 1}),
                   ({np.int64(7): {np.str_("x"): 1}}, {"7": {"x": 1}}),
                   ({datetime.date(2024, 1, 2): 1}, {"2024-01-02": 1}),
                   ([{Color.RED: 1}], [{"red": 1}]), ({pd.Timestamp("2024-01-02"): 1}, {"2024-01-02T00:00:00": 1}))

    def test_numpy(self):
        self.check(([np.int8(1), np.float32(.5), np.bool_(True)], [1, .5, True]),
                   ([np.eye(2)], [[[1.0, 0.0], [0.0, 1.0]]]),
                   ([np.arange(6)[::2]], [[0, 2, 4]]), ({"a": np.array(["x", None], object)}, {"a": ["x", None]}))

    def test_dates(self):
        moment = datetime.datetime(2024, 1, 2, 3, 4, 5)
        self.check(([moment, moment.replace(tzinfo=UTC)], ["2024-01-02T03:04:05", "2024-01-02T03:04:05+00:00"]),
                   ([moment.date(), moment.time()], ["2024-01-02", "03:04:05"]),
                   ([np.datetime64(moment, "ns"), np.datetime64("NaT")], ["2024-01-02T03:04:05", None]),
                   ([np.array([moment], "datetime64[ns]")], [["2024-01-02T03:04:05"]]),
                   ([pd.Timestamp(moment), pd.NaT, pd.NA], ["2024-01-02T03:04:05", None, None]))

    def test_other_types(self):
        self.check(([Color.RED], ["red"]), ([Point(1, [2])], [{"x": 1, "tags": [2]}]),
                   ([uuid.UUID(int=1)], ["00000000-0000-0000-0000-000000000001"]))

    def test_no_form_in_json(self):
        circle = []
        circle.append(circle)
        self.check(*((value, None) for value in (
            [object()], [collections.UserDict()], [b"x"], [{1}], [1j], [decimal.Decimal(1)], {(1, 2): 3}, circle,
            ["\ud800"], [np.timedelta64(1, "s")], [np.longdouble(1)], [pd.DataFrame({"a": [1]})], [Point])))

    def test_depth(self):
        self.check((nested(254), nested(254)), (nested(255), None), (nested(5000), None))


class Frames(unittest.TestCase):
    def check(self, frame, expected):
        self.assertEqual(json.dumps(frame_data(frame), allow_nan=False), json.dumps(expected))

    def test_plain(self):
        self.check(pd.DataFrame({"a": [1, 2], "b": ["x", "y"]}), {"a": [1, 2], "b": ["x", "y"]})
        self.check(pd.DataFrame(), {})

    def test_nothing(self):
        self.check(pd.DataFrame({"n": [1.5, None], "t": pd.to_datetime(["2024-01-02", None]), "o": ["a", None],
                                 "i": pd.array([1, None], dtype="Int64"), "inf": [np.inf, 1]}),
                   {"n": [1.5, None], "t": ["2024-01-02T00:00:00", None], "o": ["a", None], "i": [1, None],
                    "inf": [None, 1.0]})

    def test_time_zone(self):
        self.check(pd.DataFrame({"t": pd.to_datetime(["2024-01-02"]).tz_localize("Europe/Prague")}),
                   {"t": ["2024-01-02T00:00:00+01:00"]})

    def test_names_of_columns(self):
        self.check(pd.DataFrame([[1, 2]]), {"0": [1], "1": [2]})
        self.check(pd.DataFrame([[1, 2]], columns=pd.MultiIndex.from_tuples([("a", "b"), ("a", "c")])),
                   {"('a', 'b')": [1], "('a', 'c')": [2]})
        self.check(pd.DataFrame([[1, 2]], columns=["a", "a"]), {"a": [2]})

    def test_cells(self):
        self.check(pd.DataFrame({"d": [datetime.date(2024, 1, 2)], "c": pd.Categorical(["a"]), "b": [b"x"], "s": [{1}],
                                 "l": [[1, {"k": 2}]], "a": [np.arange(2)], "td": [pd.Timedelta("1d")],
                                 "p": pd.period_range("2024-01", periods=1, freq="M"), "x": [decimal.Decimal("1.5")]}),
                   {"d": ["2024-01-02"], "c": ["a"], "b": ["eA=="], "s": [[1]], "l": [[1, {"k": 2}]], "a": [[0, 1]],
                    "td": ["1 days 00:00:00"], "p": ["2024-01"], "x": ["1.5"]})


if __name__ == "__main__":
    unittest.main()
