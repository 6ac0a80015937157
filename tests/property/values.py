"""Random values of every CQL type, their canonical form, and Cassandra's order of them.

A `Kind` has a type's CQL name, a hypothesis strategy for driver values, and a sort key. The sort key gives the order of a clustering column
of that type in Cassandra 5.
"""

import datetime
import decimal
import functools
import ipaddress
import math
import struct
import uuid
from dataclasses import dataclass
from typing import Callable, Optional

from cassandra.util import Date, Duration, Time
from hypothesis import strategies as st

EPOCH = datetime.datetime(1970, 1, 1)


@dataclass(frozen=True)
class Kind:
    cql: str
    strategy: st.SearchStrategy
    order: Optional[Callable] = None  # None: the type cannot be a key
    element: Optional[st.SearchStrategy] = None  # values that are equal only if Cassandra says so

    def __str__(self):
        return self.cql


def float32(x):
    return struct.unpack(">f", struct.pack(">f", x))[0]


def float_order(x):
    """Returns a sort key with the order of Java's Double.compare: -0.0 before 0.0, NaN last."""
    if math.isnan(x):
        return (1, 0.0, 0)
    return (0, x, 0 if x != 0 or math.copysign(1, x) > 0 else -1)


def timestamp_of(u):
    return u.time


def signed_bytes(raw):
    return tuple(b - 256 if b > 127 else b for b in raw)


def timeuuid_order(u):
    """Returns a sort key with the order of TimeUUIDType: the time, then the rest as signed bytes."""
    return (u.time, signed_bytes(u.bytes[8:]))


def uuid_order(u):
    """Returns a sort key with the order of UUIDType: the version, then the time of version 1, or the unsigned bytes of others."""
    version = (u.int >> 76) & 0xF
    high = u.time if version == 1 else u.int >> 64
    return (version, high, u.int & (2**64 - 1))


def milliseconds(t):
    return (t - EPOCH) // datetime.timedelta(milliseconds=1)


decimals = st.builds(lambda n, s: decimal.Decimal(n).scaleb(-s, decimal.Context(prec=60)),
                     st.integers(-10**30, 10**30), st.integers(-20, 20))
plain_floats = st.floats(allow_nan=False).map(lambda x: x + 0.0 if x else 0.0)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
# the driver counts them in floating seconds, which are exact to the millisecond for a century or so
timestamps = st.integers(-4_000_000_000_000, 4_000_000_000_000).map(
    lambda ms: EPOCH + datetime.timedelta(milliseconds=ms))
# without those of version 6 that hold one of version 4, which have several spellings
addresses = st.ip_addresses().filter(lambda a: a.version == 4 or int(a) >> 48).map(str)
timeuuids = st.builds(lambda t, rest: uuid.UUID(
    fields=(t & 0xFFFFFFFF, (t >> 32) & 0xFFFF, ((t >> 48) & 0x0FFF) | 0x1000,
            rest[0] & 0x3F | 0x80, rest[1], int.from_bytes(rest[2:8], "big"))),
    st.integers(0, 2**60 - 1), st.binary(min_size=8, max_size=8))
durations = st.one_of(
    st.builds(Duration, st.integers(0, 2**31 - 1), st.integers(0, 2**31 - 1), st.integers(0, 2**63 - 1)),
    st.builds(Duration, st.integers(-2**31, 0), st.integers(-2**31, 0), st.integers(-2**63, 0)))


def integers(bits):
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return st.one_of(st.integers(low, high), st.integers(-3, 3), st.sampled_from([low, high]))


SCALARS = [
    Kind("ascii", st.text(st.characters(max_codepoint=127), max_size=20), lambda v: v.encode()),
    Kind("bigint", integers(64), lambda v: v),
    Kind("blob", st.binary(max_size=40), lambda v: v),
    Kind("boolean", st.booleans(), lambda v: v),
    Kind("date", integers(32).map(Date), lambda v: v.days_from_epoch),
    Kind("decimal", decimals, lambda v: v, decimals.map(lambda d: d.normalize(decimal.Context(prec=60)))),
    Kind("double", st.floats(), float_order, plain_floats),
    Kind("duration", durations),
    Kind("float", st.floats(width=32), float_order, plain_floats.map(lambda x: x).filter(lambda x: abs(x) < 1e30).map(float32)
         .map(lambda x: x if x else 0.0)),
    Kind("inet", addresses, lambda v: ipaddress.ip_address(v).packed),
    Kind("int", integers(32), lambda v: v),
    Kind("smallint", integers(16), lambda v: v),
    Kind("text", texts, lambda v: v.encode()),
    Kind("time", st.integers(0, 86_399_999_999_999).map(Time), lambda v: v.nanosecond_time),
    Kind("timestamp", timestamps, milliseconds),
    Kind("timeuuid", timeuuids, timeuuid_order),
    Kind("tinyint", integers(8), lambda v: v),
    # Not `st.uuids()`, whose numbers come from outside of the seed.
    Kind("uuid", st.integers(0, 2**128 - 1).map(lambda number: uuid.UUID(int=number)), uuid_order),
    Kind("varint", st.one_of(st.integers(-2**200, 2**200), integers(64)), lambda v: v),
]
BY_NAME = {k.cql: k for k in SCALARS}


def elements(kind):
    return kind.element if kind.element is not None else kind.strategy


def list_of(kind, frozen=True):
    order = kind.order and (lambda v: [kind.order(x) for x in v])
    cql = f"list<{kind.cql}>"
    return Kind(f"frozen<{cql}>" if frozen else cql, st.lists(elements(kind), max_size=5), order)


def set_of(kind, frozen=True):
    order = kind.order and (lambda v: sorted(kind.order(x) for x in v))
    cql = f"set<{kind.cql}>"
    strategy = st.lists(elements(kind), max_size=5, unique_by=lambda v: repr(canonical(v))).map(
        lambda v: tuple(sorted(v, key=kind.order)))
    return Kind(f"frozen<{cql}>" if frozen else cql, strategy, order)


def map_of(key, value, frozen=True):
    order = key.order and value.order and (
        lambda v: sorted((key.order(k), value.order(x)) for k, x in v.items()))
    cql = f"map<{key.cql}, {value.cql}>"
    pairs = st.lists(st.tuples(elements(key), elements(value)), max_size=5, unique_by=lambda p: repr(canonical(p[0])))
    # a client sends sets and maps sorted: Cassandra keeps frozen ones as they came
    in_order = lambda items: dict(sorted(items, key=lambda p: key.order(p[0])))
    return Kind(f"frozen<{cql}>" if frozen else cql, pairs.map(in_order), order)


def nullable(kind):
    """Returns the sort key of a tuple's field: null is before all values."""
    return lambda v: (0,) if v is None else (1, kind.order(v))


def tuple_of(*kinds):
    order = all(k.order for k in kinds) and (lambda v: [nullable(k)(x) for k, x in zip(kinds, v)])
    strategy = st.tuples(*[st.one_of(st.none(), elements(k)) for k in kinds])
    return Kind(f"frozen<tuple<{', '.join(k.cql for k in kinds)}>>", strategy, order or None)


def vector_of(kind, n):
    order = kind.order and (lambda v: [kind.order(x) for x in v])
    return Kind(f"vector<{kind.cql}, {n}>", st.lists(elements(kind), min_size=n, max_size=n), order)


_INT, _TEXT, _BLOB, _UUID = BY_NAME["int"], BY_NAME["text"], BY_NAME["blob"], BY_NAME["uuid"]
FROZEN = [
    list_of(_INT), list_of(_TEXT), set_of(_INT), set_of(_TEXT), map_of(_TEXT, _INT), map_of(_INT, _BLOB),
    tuple_of(_INT, _TEXT), tuple_of(BY_NAME["timeuuid"], BY_NAME["decimal"], BY_NAME["boolean"]),
    vector_of(BY_NAME["float"], 3), vector_of(_INT, 2), list_of(tuple_of(_INT, _TEXT)),
    map_of(_TEXT, list_of(_INT)),
]
LIVE = [list_of(k, frozen=False) for k in SCALARS if k.cql != "duration"]
LIVE += [set_of(k, frozen=False) for k in SCALARS if k.order]
LIVE += [map_of(k, _TEXT, frozen=False) for k in SCALARS if k.order]
LIVE += [map_of(_INT, k, frozen=False) for k in SCALARS]
LIVE += [list_of(list_of(list_of(_INT)), frozen=False), map_of(_TEXT, map_of(_INT, tuple_of(_TEXT, _INT)), frozen=False),
         vector_of(_TEXT, 2), vector_of(BY_NAME["double"], 7)]


def canonical(value):
    """Returns a form that is equal in Python exactly if the CQL values are equal."""
    if value is None or isinstance(value, (str, bytes, bool, int)):
        return value
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else ("float", repr(value))
    if isinstance(value, decimal.Decimal):
        return ("decimal", value.as_tuple())
    if isinstance(value, Duration):
        return (value.months, value.days, value.nanoseconds)
    if hasattr(value, "items"):
        return ("map", sorted(((canonical(k), canonical(v)) for k, v in value.items()), key=repr))
    if isinstance(value, tuple) or hasattr(value, "_asdict"):
        return tuple(canonical(v) for v in value)
    if isinstance(value, list):
        return [canonical(v) for v in value]
    if hasattr(value, "__iter__"):  # a set of some sort
        return ("set", sorted((canonical(v) for v in value), key=repr))
    return repr(value)


def canonical_as(kind, value):
    """Returns `canonical` of the value as a column of this kind stores it: sets are unordered, and empty live collections are null."""
    live = not kind.cql.startswith(("frozen", "vector", "tuple"))
    if live and kind.cql.startswith(("list<", "set<", "map<")) and value is not None and len(value) == 0:
        return None
    if "set<" in kind.cql and isinstance(value, tuple) and kind.cql.startswith(("set<", "frozen<set<")):
        return ("set", sorted((canonical(v) for v in value), key=repr))
    return canonical(value)


def sort(kind, values, reverse=False):
    return sorted(values, key=kind.order, reverse=reverse)
