"""CQL types as the wire names them: their text, the canonical text of their values, and values from literals."""

import datetime
import decimal
import ipaddress
import math
import re
import struct
import uuid


class _Unset:
    def __repr__(self):
        return "unset"


Unset = _Unset()

SIMPLE = {
    1: "ascii", 2: "bigint", 3: "blob", 4: "boolean", 5: "counter", 6: "decimal", 7: "double", 8: "float",
    9: "int", 0x0B: "timestamp", 0x0C: "uuid", 0x0D: "text", 0x0E: "varint", 0x0F: "timeuuid", 0x10: "inet",
    0x11: "date", 0x12: "time", 0x13: "smallint", 0x14: "tinyint", 0x15: "duration",
}

CLASS_NAMES = {
    "AsciiType": "ascii", "LongType": "bigint", "BytesType": "blob", "BooleanType": "boolean",
    "CounterColumnType": "counter", "DecimalType": "decimal", "DoubleType": "double", "FloatType": "float",
    "Int32Type": "int", "TimestampType": "timestamp", "UUIDType": "uuid", "UTF8Type": "text",
    "IntegerType": "varint", "TimeUUIDType": "timeuuid", "InetAddressType": "inet", "SimpleDateType": "date",
    "TimeType": "time", "ShortType": "smallint", "ByteType": "tinyint", "DurationType": "duration",
}

VECTOR_FIXED = {"bigint": 8, "boolean": 1, "double": 8, "float": 4, "int": 4, "timestamp": 8, "uuid": 16, "timeuuid": 16}


class Type:
    """A type: `name`, the types within, and a UDT's keyspace, name and fields, or a vector's dimension."""

    def __init__(self, name, args=(), udt=None, fields=(), dimension=0, class_name=None):
        self.name, self.args, self.udt, self.fields = name, list(args), udt, list(fields)
        self.dimension, self.class_name = dimension, class_name

    def __str__(self):
        if self.name == "custom":
            return f"'{self.class_name}'"
        if self.name == "udt":
            inner = ", ".join(f"{f} {t}" for f, t in zip(self.fields, self.args))
            return f"{self.udt}({inner})"
        if self.name == "vector":
            return f"vector<{self.args[0]}, {self.dimension}>"
        if self.args:
            return f"{self.name}<{', '.join(map(str, self.args))}>"
        return self.name


def parse_class(text):
    """Returns the type of a marshal class name, and `custom` if the class is not known."""
    text = text.strip()
    m = re.fullmatch(r"(?:org\.apache\.cassandra\.db\.marshal\.)?(\w+)(?:\((.*)\))?", text, re.S)
    if not m:
        return Type("custom", class_name=text)
    name, inner = m.groups()
    if name in CLASS_NAMES and inner is None:
        return Type(CLASS_NAMES[name])
    parts = split_top(inner or "", ",")
    if name == "VectorType" and len(parts) == 2:
        return Type("vector", [parse_class(parts[0])], dimension=int(parts[1]), class_name=text)
    if name == "FrozenType" and len(parts) == 1:
        return parse_class(parts[0])
    names = {"ListType": "list", "SetType": "set", "MapType": "map", "TupleType": "tuple"}
    if name in names:
        return Type(names[name], [parse_class(p) for p in parts])
    return Type("custom", class_name=text)


def split_top(text, separator):
    """Splits at separators outside of brackets and quotes."""
    out, depth, current, quote = [], 0, "", None
    for c in text:
        if quote:
            quote = None if c == quote else quote
        elif c in "'\"":
            quote = c
        elif c in "([{<":
            depth += 1
        elif c in ")]}>":
            depth -= 1
        elif c == separator and depth == 0:
            out.append(current.strip())
            current = ""
            continue
        current += c
    if current.strip() or out:
        out.append(current.strip())
    return out


def read_type(r):
    option = r.u16()
    if option == 0:
        return parse_class(r.string())
    if option in SIMPLE:
        return Type(SIMPLE[option])
    if option == 0x20:
        return Type("list", [read_type(r)])
    if option == 0x21:
        return Type("map", [read_type(r), read_type(r)])
    if option == 0x22:
        return Type("set", [read_type(r)])
    if option == 0x30:
        keyspace, name = r.string(), r.string()
        fields = [(r.string(), read_type(r)) for _ in range(r.u16())]
        return Type("udt", [t for _, t in fields], f"{keyspace}.{name}", [f for f, _ in fields])
    if option == 0x31:
        return Type("tuple", [read_type(r) for _ in range(r.u16())])
    raise ValueError(f"unknown type option {option}")


def quote(s):
    out = s.replace("\\", "\\\\").replace("'", "''").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    return "'" + "".join(c if c.isprintable() else f"\\u{{{ord(c):x}}}" for c in out) + "'"


def vints(b, count):
    """Decodes `count` zigzag vints."""
    out, pos = [], 0
    for _ in range(count):
        first = b[pos]
        extra = 0
        while extra < 8 and first & (0x80 >> extra):
            extra += 1
        value = first & (0xFF >> extra) if extra < 8 else 0
        for i in range(extra):
            value = value << 8 | b[pos + 1 + i]
        pos += 1 + extra
        out.append((value >> 1) ^ -(value & 1))
    return out


def uvint(b, pos):
    first = b[pos]
    extra = 0
    while extra < 8 and first & (0x80 >> extra):
        extra += 1
    value = first & (0xFF >> extra) if extra < 8 else 0
    for i in range(extra):
        value = value << 8 | b[pos + 1 + i]
    return value, pos + 1 + extra


def exactly(b, n):
    if len(b) != n:
        raise ValueError("wrong length")
    return b


FLOAT_MAX = 3.4028235677973366e38


def float_text(b):
    f = struct.unpack(">f", exactly(b, 4))[0]
    if math.isnan(f) or math.isinf(f):
        return str(f)
    for digits in range(1, 10):
        s = f"{f:.{digits}g}"
        # Rounded up, the greatest number is none.
        if abs(float(s)) <= FLOAT_MAX and struct.pack(">f", float(s)) == b:
            return repr(float(s))
    return repr(f)


def show(t, b):
    """Returns the canonical text of the serialized value `b` of type `t`. If it cannot be decoded, returns hex with a mark."""
    if b is None:
        return "null"
    try:
        return show_strict(t, b)
    except Exception:
        return f"0x{b.hex()}!{t}"


def show_strict(t, b):
    n = t.name
    if n in ("text", "ascii"):
        return quote(b.decode("utf-8"))
    if n in ("blob", "custom"):
        return "0x" + b.hex()
    if not b:
        return "<empty>"
    if n in ("bigint", "counter", "timestamp"):
        return str(struct.unpack(">q", exactly(b, 8))[0])
    if n == "time":
        return str(struct.unpack(">q", exactly(b, 8))[0])
    if n == "int":
        return str(struct.unpack(">i", exactly(b, 4))[0])
    if n == "smallint":
        return str(struct.unpack(">h", exactly(b, 2))[0])
    if n == "tinyint":
        return str(struct.unpack(">b", exactly(b, 1))[0])
    if n == "boolean":
        return "true" if exactly(b, 1)[0] else "false"
    if n == "date":
        return "day " + str(struct.unpack(">I", exactly(b, 4))[0] - (1 << 31))
    if n == "double":
        return repr(struct.unpack(">d", exactly(b, 8))[0])
    if n == "float":
        return float_text(b)
    if n == "varint":
        return str(int.from_bytes(b, "big", signed=True))
    if n == "decimal":
        unscaled, scale = int.from_bytes(b[4:], "big", signed=True), struct.unpack(">i", b[:4])[0]
        digits = tuple(map(int, str(abs(unscaled))))
        if abs(scale) > 100000:
            return f"{unscaled}E{-scale}"
        return str(decimal.Decimal((1 if unscaled < 0 else 0, digits, -scale)))
    if n in ("uuid", "timeuuid"):
        return str(uuid.UUID(bytes=exactly(b, 16)))
    if n == "inet":
        return str(ipaddress.ip_address(b))
    if n == "duration":
        months, days, nanos = vints(b, 3)
        return f"{months}mo{days}d{nanos}ns"
    if n in ("list", "set", "map"):
        return show_collection(t, b)
    if n in ("tuple", "udt"):
        return show_tuple(t, b)
    if n == "vector":
        return show_vector(t, b)
    raise ValueError(n)


def show_collection(t, b):
    count, pos, items = struct.unpack(">i", b[:4])[0], 4, []

    def element(u):
        nonlocal pos
        size = struct.unpack(">i", b[pos:pos + 4])[0]
        pos += 4
        if size < 0:
            return "null"
        value = b[pos:pos + size]
        exactly(value, size)
        pos += size
        return show(u, value)

    for _ in range(count):
        items.append(f"{element(t.args[0])}: {element(t.args[1])}" if t.name == "map" else element(t.args[0]))
    if pos != len(b):
        raise ValueError("trailing bytes")
    return ("[%s]" if t.name == "list" else "{%s}") % ", ".join(items)


def show_tuple(t, b):
    pos, items = 0, []
    for i, u in enumerate(t.args):
        if pos == len(b):
            value = "absent"
        else:
            size = struct.unpack(">i", b[pos:pos + 4])[0]
            pos += 4
            value = "null" if size < 0 else show(u, exactly(b[pos:pos + size], size))
            pos += max(size, 0)
        items.append(f"{t.fields[i]}: {value}" if t.fields else value)
    if pos != len(b):
        raise ValueError("trailing bytes")
    return ("{%s}" if t.name == "udt" else "(%s)") % ", ".join(items)


def show_vector(t, b):
    u, items, pos = t.args[0], [], 0
    size = fixed_size(u)
    for _ in range(t.dimension):
        if size is None:
            n, pos = uvint(b, pos)
        else:
            n = size
        items.append(show(u, exactly(b[pos:pos + n], n)))
        pos += n
    if pos != len(b):
        raise ValueError("trailing bytes")
    return "v[%s]" % ", ".join(items)


def fixed_size(t):
    if t.name == "vector":
        inner = fixed_size(t.args[0])
        return None if inner is None else inner * t.dimension
    return VECTOR_FIXED.get(t.name)


# Values from literals, for bound parameters.

def encode(t, text):
    """Returns the serialized form of a literal: null, unset, raw(0x…), or a value of type `t`."""
    text = text.strip()
    if text == "null":
        return None
    if text == "unset":
        return Unset
    if text.startswith("raw("):
        return bytes.fromhex(text[4:-1].removeprefix("0x"))
    return encode_value(t, text)


def unquote(text):
    return text[1:-1].replace("''", "'") if text.startswith("'") else text


def uvint_bytes(n):
    if n < 0x80:
        return bytes([n])
    for extra in range(1, 9):
        if extra == 8 or n < 1 << (7 * extra + 7):
            body = n.to_bytes(extra + 1, "big") if extra < 8 else b"\0" + n.to_bytes(8, "big")
            mask = (0xFF << (8 - extra)) & 0xFF
            return bytes([body[0] | mask]) + body[1:]
    raise ValueError(n)


def zigzag(n):
    return uvint_bytes((n << 1 ^ n >> 63) & 0xFFFFFFFFFFFFFFFF)


def varint_bytes(n):
    length = max(1, (n.bit_length() + 8) // 8)
    return n.to_bytes(length, "big", signed=True)


def sized(t, text):
    value = encode(t, text)
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def encode_value(t, text):
    n = t.name
    packs = {"bigint": ">q", "counter": ">q", "timestamp": ">q", "time": ">q", "int": ">i", "smallint": ">h", "tinyint": ">b"}
    if n in packs:
        return struct.pack(packs[n], int(text))
    if n in ("text", "ascii"):
        return unquote(text).encode("utf-8")
    if n in ("blob", "custom"):
        return bytes.fromhex(text.removeprefix("0x"))
    if n == "boolean":
        return b"\1" if text == "true" else b"\0"
    if n == "date":
        if text.startswith("'"):
            days = (datetime.date.fromisoformat(unquote(text)) - datetime.date(1970, 1, 1)).days
        else:
            days = int(text)
        return struct.pack(">I", days + (1 << 31))
    if n == "double":
        return struct.pack(">d", float(text))
    if n == "float":
        return struct.pack(">f", float(text))
    if n == "varint":
        return varint_bytes(int(text))
    if n == "decimal":
        sign, digits, exponent = decimal.Decimal(text).as_tuple()
        unscaled = int("".join(map(str, digits))) * (-1 if sign else 1)
        return struct.pack(">i", -exponent) + varint_bytes(unscaled)
    if n in ("uuid", "timeuuid"):
        return uuid.UUID(text).bytes
    if n == "inet":
        return ipaddress.ip_address(unquote(text)).packed
    if n == "duration":
        months, days, nanos = map(int, re.fullmatch(r"(-?\d+)mo(-?\d+)d(-?\d+)ns", text).groups())
        return zigzag(months) + zigzag(days) + zigzag(nanos)
    inner = split_top(text[1:-1], ",")
    if n in ("list", "set"):
        return struct.pack(">i", len(inner)) + b"".join(sized(t.args[0], i) for i in inner)
    if n == "map":
        pairs = [split_top(i, ":") for i in inner]
        return struct.pack(">i", len(pairs)) + b"".join(sized(t.args[0], k) + sized(t.args[1], v) for k, v in pairs)
    if n == "tuple":
        return b"".join(sized(u, i) for u, i in zip(t.args, inner))
    if n == "udt":
        fields = dict(split_top(i, ":") for i in inner)
        return b"".join(sized(u, fields.get(f, "null")) for f, u in zip(t.fields, t.args))
    if n == "vector":
        size = fixed_size(t.args[0])
        values = [encode(t.args[0], i) for i in inner]
        return b"".join(v if size else uvint_bytes(len(v)) + v for v in values)
    raise ValueError(f"cannot encode {t}")


def parse_type(text):
    """Returns the type of a simple type's text in CQL, for values that are sent without preparing."""
    text = text.strip()
    m = re.fullmatch(r"(\w+)(?:<(.*)>)?", text)
    name, inner = m.groups()
    if name == "vector":
        element, dimension = split_top(inner, ",")
        return Type("vector", [parse_type(element)], dimension=int(dimension))
    name = "text" if name == "varchar" else name
    return Type(name, [parse_type(p) for p in split_top(inner or "", ",")])
