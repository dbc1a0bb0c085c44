"""Python's values as JSON has them."""

import base64
import dataclasses
import datetime
import enum
import json
import sys
import uuid

# Deeper than that, some of those who read it on the way give up on the whole message.
DEPTH = 254

MISSING = ("NaTType", "NAType")         # of pandas; NaT is a datetime as well


def json_value(value):
    """A list or dict, or None when something in it has no form in JSON: then its text has to do."""
    return plain(value, in_json)


def frame_data(frame):
    """A DataFrame's columns by name.  What JSON has no form for is told by its text."""
    return plain({str(name): column.tolist() for name, column in frame.items()}, in_cell)


def plain(value, default):
    """NaN and infinities, which JSON does not have, become None."""
    try:
        try:
            text = json.dumps(value, default=default, ensure_ascii=False)
        except TypeError:
            text = json.dumps(with_keys(value), default=default, ensure_ascii=False)
        text.encode()                   # a lone surrogate could not be sent
        value = json.loads(text, parse_constant=lambda name: None)
    except Exception:                   # the objects in it may raise whatever they like
        return None
    return value if fits(value, DEPTH) else None


def fits(value, levels):
    if isinstance(value, dict):
        value = value.values()
    elif not isinstance(value, list):
        return True
    return levels > 0 and all(fits(v, levels - 1) for v in value)


def with_keys(value):
    """json takes only strings and Python's own numbers for keys."""
    if isinstance(value, dict):
        return {key(k): with_keys(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [with_keys(v) for v in value]
    return value


def key(value):
    if value is None or isinstance(value, (str, int, float)):
        return value
    return key(in_json(value))


def in_json(value):
    """What json does not know."""
    if is_missing(value):
        return None
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, uuid.UUID):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
    if is_numpy(value):
        if value.dtype.kind == "M":     # in nanoseconds it would be a bare number
            value = value.astype("datetime64[us]")
        return value.tolist()
    raise TypeError


def in_cell(value):
    if isinstance(value, (set, frozenset)):
        return list(value)
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    try:
        return in_json(value)
    except TypeError:
        return str(value)


def is_missing(value):
    return type(value).__name__ in MISSING


def is_numpy(value):
    numpy = sys.modules.get("numpy")
    return numpy is not None and isinstance(value, (numpy.ndarray, numpy.generic))
