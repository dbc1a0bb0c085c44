"""What a matplotlib figure shows: a chart as the SDKs' Chart types have it."""

import datetime
import math
import re

import numpy
from matplotlib import dates
from matplotlib.category import StrCategoryConverter
from matplotlib.collections import PathCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.patches import PathPatch, Rectangle, Wedge
from matplotlib.transforms import IdentityTransform

from .boxes import find_boxes
from .values import is_missing

UNIT = re.compile(r"\s\((?P<round>[^)]*)\)|\[(?P<square>[^]]*)\]")


def figure_chart(figure):
    """An empty one when there is no data in the figure."""
    if not any(ax.has_data() for ax in figure.axes):
        return {}
    charts = [axes_chart(ax) for ax in figure.axes]
    if len(charts) == 1:
        return charts[0]
    title = figure._suptitle            # get_suptitle() came with matplotlib 3.8
    return {"type": "superchart", "title": title.get_text() if title else "", "elements": charts}


def axes_chart(ax):
    """A figure is shown even if what is in it cannot be told."""
    try:
        return known_chart(ax) or chart(ax, "unknown", [])
    except Exception:
        return chart(ax, "unknown", [])


def known_chart(ax):
    """By what was drawn, texts and error bars apart; lines of a grid are nobody's data, unless there are only lines."""
    errors = error_bars(ax)
    lines = [line for line in ax.lines if line not in errors]
    patches = list(ax.patches)
    collections = [collection for collection in ax.collections if collection not in errors]
    if ax.images or ax.tables or ax.artists or ax.name == "3d":
        return None

    if not collections and are(PathPatch, patches):
        boxes = find_boxes(lines, patches)
        if boxes:
            return box_chart(ax, *boxes)
        return None if patches else line_chart(ax, lines)

    if not all(is_grid_line(line) for line in lines):
        return None
    if not patches and are(PathCollection, collections) and not any(is_contour(c) for c in collections):
        return scatter_chart(ax)
    if not collections and are(Wedge, patches):
        return pie_chart(ax)
    if not collections and are(Rectangle, patches):
        return bar_chart(ax)
    return None


def are(kind, artists):
    return all(isinstance(artist, kind) for artist in artists)


def is_grid_line(line):
    x, y = line.get_xdata(), line.get_ydata()
    return len(x) == 2 and len(y) == 2 and (x[0] == x[1] or y[0] == y[1])


def is_guide(line):
    """One over the whole axes, as by axhline()."""
    return is_grid_line(line) and line.get_transform() is not line.axes.transData


def error_bars(ax):
    containers = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    return {artist for container in containers for artists in container.lines[1:] for artist in artists}


def is_contour(collection):
    """matplotlib before 3.8 draws contours by paths that stay where they are."""
    return isinstance(collection.get_offset_transform(), IdentityTransform)


# ---- kinds of charts; the order of members is that of the reference server

def chart(ax, kind, elements):
    return {"type": kind, "title": ax.get_title() or None, "elements": elements}


def labelled(ax, kind, elements, swapped=False):
    """With labels and units of both axes; bars and boxes that lie have theirs swapped, as if they stood."""
    x, y = ax.get_xlabel() or None, ax.get_ylabel() or None
    if swapped:
        x, y = y, x
    return {**chart(ax, kind, elements), "x_label": x, "y_label": y, "x_unit": unit(x), "y_unit": unit(y)}


def unit(label):
    """What is in brackets in "Time (s)" or "Time [s]"."""
    found = UNIT.search(label or "")
    return found and (found["round"] or found["square"])


def point_chart(ax, kind, elements):
    return {**labelled(ax, kind, elements), **ticks("x", ax.xaxis), **ticks("y", ax.yaxis)}


def line_chart(ax, lines):
    # A line with error bars is named by these; before matplotlib 3.8 they may have no name at all.
    names = {c.lines[0]: own_name(c.get_label() or "_container%d" % number, "_container", "Line")
             for number, c in enumerate(ax.containers) if isinstance(c, ErrorbarContainer)}
    elements = [{"label": names.get(line) or own_name(line.get_label(), "_child", "Line"),
                 "points": points(line.get_xdata(), line.get_ydata())}
                for line in lines if not is_guide(line)]
    return point_chart(ax, "line", elements)


def scatter_chart(ax):
    x, y = Places(ax.xaxis), Places(ax.yaxis)
    elements = [{"label": group.get_label(), "points": [[x.at(px), y.at(py)] for px, py in group.get_offsets()]}
                for group in ax.collections if isinstance(group, PathCollection)]
    return point_chart(ax, "scatter", elements)


def pie_chart(ax):
    elements = [{"label": wedge.get_label(), "angle": degrees(abs(wedge.theta2 - wedge.theta1)),
                 "radius": float(wedge.r)} for wedge in ax.patches]
    return chart(ax, "pie", elements)


def bar_chart(ax):
    groups = [c for c in ax.containers if isinstance(c, BarContainer)]
    lying = any(group.orientation == "horizontal" for group in groups)
    label = Labels(ax.yaxis if lying else ax.xaxis)
    elements = []
    for group in groups:
        name = own_name(group.get_label(), "_container", "Group")
        for bar in group:
            start, width = (bar.get_y(), bar.get_height()) if lying else (bar.get_x(), bar.get_width())
            if not math.isfinite(start + width / 2):
                continue                # it is not drawn; a bin without end
            value = bar.get_width() if lying else bar.get_height()
            elements.append({"label": label.at(start + width / 2), "group": name, "value": coordinate(value)})
    return labelled(ax, "bar", elements, lying)


def box_chart(ax, boxes, lying):
    label = Labels(ax.yaxis if lying else ax.xaxis)
    elements = [{"label": label.at(box.center), "min": box.low, "first_quartile": box.first, "median": box.median,
                 "third_quartile": box.third, "max": box.high, "outliers": box.outliers} for box in boxes]
    return labelled(ax, "box_and_whisker", elements, lying)


def own_name(label, prefix, name):
    """matplotlib's names for what has none: "_child0" is Line 0."""
    return label.replace(prefix, name + " ", 1) if label.startswith(prefix) else label


def degrees(angle):
    """matplotlib computes angles with float32, whose noise nobody wants to see."""
    if not angle:
        return 0.0
    digits = 8 - math.floor(math.log10(angle))
    return float("%.*g" % (digits, angle))


# ---- axes

def ticks(name, axis):
    places = [float(tick) for tick in axis.get_ticklocs()]
    labels = [label.get_text() for label in axis.get_ticklabels()]
    scale = axis_scale(axis)
    if scale == "datetime":
        places = [date_at(axis, place).isoformat() for place in places]
    return {name + "_ticks": places, name + "_tick_labels": labels, name + "_scale": scale}


def axis_scale(axis):
    if has_dates(axis):
        return "datetime"
    if isinstance(converter(axis), StrCategoryConverter):
        return "categorical"
    return axis.get_scale()


def converter(axis):
    """get_converter() came with matplotlib 3.10, which warns of the attribute."""
    return axis.get_converter() if hasattr(axis, "get_converter") else axis.converter


def has_dates(axis):
    return isinstance(converter(axis), (dates.DateConverter, dates._SwitchableDateConverter))


def date_at(axis, place):
    """Days, or on an axis that pandas made for a regular series periods, both since 1970."""
    freq = getattr(axis, "freq", None)
    if freq is None:
        return dates.num2date(place)
    from pandas import Period
    return Period(ordinal=int(place), freq=freq).to_timestamp().tz_localize("UTC")


class Places:
    """What a place on an axis was drawn for: matplotlib keeps numbers alone of a scatter plot."""

    def __init__(self, axis):
        self.axis = axis
        self.dates = has_dates(axis)
        self.categories = {}
        if isinstance(converter(axis), StrCategoryConverter):
            self.categories = {place: name for name, place in axis.get_units()._mapping.items()}

    def at(self, place):
        value = coordinate(place)
        if value is not None and self.dates:
            return date_at(self.axis, value).replace(tzinfo=None).isoformat()
        return self.categories.get(value, value)


class Labels:
    """What an axis with bars or boxes says at a place, which need not be that of a tick."""

    def __init__(self, axis):
        self.axis = axis
        self.formatter = axis.get_major_formatter()
        self.given = not axis.isDefault_majfmt or isinstance(converter(axis), StrCategoryConverter)
        self.ticks = list(zip(axis.get_ticklocs(), axis.get_ticklabels()))

    def at(self, place):
        if self.given:
            text = self.formatter(place)
            if not text and self.ticks:
                text = min(self.ticks, key=lambda tick: abs(tick[0] - place))[1].get_text()
            return text
        if has_dates(self.axis):
            return date_at(self.axis, place).isoformat(" ").replace("+00:00", "").replace(" 00:00:00", "")
        return "%.12g" % round(place, 6)


# ---- values

def points(xs, ys):
    return [[coordinate(x), coordinate(y)] for x, y in zip(xs, ys)]


def coordinate(value):
    """A number, or a category or date as text; None where there is nothing."""
    if isinstance(value, float):        # the most, by far
        return float(value) if math.isfinite(value) else None
    if isinstance(value, str):
        return str(value)
    if value is numpy.ma.masked or is_missing(value):
        return None
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, numpy.datetime64):
        return None if numpy.isnat(value) else str(value.astype("datetime64[s]"))
    if hasattr(value, "to_timestamp"):  # a period of pandas
        return value.to_timestamp().isoformat()
    value = float(value)
    return value if math.isfinite(value) else None
