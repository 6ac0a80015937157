"""A minimal native protocol client (v3, v4, v5 without compression) that shows exactly what a server sends."""

import socket
import struct
import zlib

from .codec import read_type, Unset

OP_ERROR, OP_STARTUP, OP_READY, OP_OPTIONS, OP_SUPPORTED = 0x00, 0x01, 0x02, 0x05, 0x06
OP_AUTHENTICATE, OP_AUTH_RESPONSE, OP_AUTH_SUCCESS = 0x03, 0x0F, 0x10
OP_QUERY, OP_RESULT, OP_PREPARE, OP_EXECUTE, OP_BATCH = 0x07, 0x08, 0x09, 0x0A, 0x0D

ERROR_NAMES = {
    0x0000: "ServerError", 0x000A: "ProtocolError", 0x0100: "BadCredentials", 0x1000: "Unavailable",
    0x1001: "Overloaded", 0x1002: "IsBootstrapping", 0x1003: "TruncateError", 0x1100: "WriteTimeout",
    0x1200: "ReadTimeout", 0x1300: "ReadFailure", 0x1400: "FunctionFailure", 0x1500: "WriteFailure",
    0x1600: "CDCWriteFailure", 0x1700: "CASWriteUnknown", 0x2000: "SyntaxError", 0x2100: "Unauthorized",
    0x2200: "Invalid", 0x2300: "ConfigError", 0x2400: "AlreadyExists", 0x2500: "Unprepared",
}

CONSISTENCY = {
    "ANY": 0, "ONE": 1, "TWO": 2, "THREE": 3, "QUORUM": 4, "ALL": 5, "LOCAL_QUORUM": 6, "EACH_QUORUM": 7,
    "SERIAL": 8, "LOCAL_SERIAL": 9, "LOCAL_ONE": 10, "NODE_LOCAL": 11,
}


class Closed(Exception):
    """The server closed the connection or did not answer in time."""


class Refused(Exception):
    """The server did not let the client in."""

    def __init__(self, error):
        super().__init__(error.message)
        self.error = error


class Reader:
    """Reads the protocol's notations from a frame body."""

    def __init__(self, data):
        self.data, self.pos = data, 0

    def take(self, n):
        out = self.data[self.pos:self.pos + n]
        if len(out) != n:
            raise ValueError("short frame")
        self.pos += n
        return out

    def u8(self):
        return self.take(1)[0]

    def u16(self):
        return struct.unpack(">H", self.take(2))[0]

    def i32(self):
        return struct.unpack(">i", self.take(4))[0]

    def string(self):
        return self.take(self.u16()).decode("utf-8")

    def string_list(self):
        return [self.string() for _ in range(self.u16())]

    def short_bytes(self):
        return self.take(self.u16())

    def bytes(self):
        n = self.i32()
        return None if n < 0 else self.take(n)


def w_string(s):
    b = s.encode("utf-8", "surrogateescape")
    return struct.pack(">H", len(b)) + b


def w_long_string(s):
    b = s.encode("utf-8", "surrogateescape")
    return struct.pack(">i", len(b)) + b


def w_bytes(b):
    if b is None:
        return struct.pack(">i", -1)
    if b is Unset:
        return struct.pack(">i", -2)
    return struct.pack(">i", len(b)) + b


def crc24(data):
    crc = 0x875060
    for byte in data:
        crc ^= byte << 16
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= 0x1974F0B
    return crc & 0xFFFFFF


def crc32_payload(data):
    return zlib.crc32(data, zlib.crc32(b"\xfa\x2d\x55\xca"))


class Error:
    """An ERROR answer; `detail` holds the fields that its code adds."""

    def __init__(self, code, message, detail):
        self.code, self.message, self.detail = code, message, detail
        self.warnings = []


class Result:
    """A RESULT answer; which fields are set depends on `kind`."""

    def __init__(self, kind):
        self.kind = kind
        self.columns, self.rows, self.paging_state = [], [], None
        self.change, self.keyspace, self.warnings = None, None, []
        self.prepared_id, self.result_metadata_id, self.binds, self.pk_indices = None, None, [], []


class Options:
    """Parameters of a QUERY or EXECUTE."""

    def __init__(self, consistency="ONE", serial=None, page_size=None, timestamp=None, now_in_seconds=None,
                 keyspace=None, skip_metadata=False):
        self.consistency, self.serial, self.page_size = consistency, serial, page_size
        self.timestamp, self.now_in_seconds, self.keyspace = timestamp, now_in_seconds, keyspace
        self.skip_metadata = skip_metadata


class Connection:
    """One connection; requests are sent one after the other."""

    def __init__(self, host, port, version=4, timeout=60, login=None):
        """Connects. `login` is a name and a password, for a server with authentication."""
        self.version = version
        self.timeout = timeout
        self.sock = socket.create_connection((host, port), timeout=timeout)
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""
        self.framed = False
        body = struct.pack(">H", 1) + w_string("CQL_VERSION") + w_string("3.0.0")
        opcode, _, reader = self.roundtrip(OP_STARTUP, body)
        if opcode not in (OP_READY, OP_AUTHENTICATE):
            raise Closed(f"STARTUP answered with opcode {opcode}: {reader.data!r}")
        self.framed = version >= 5
        if opcode == OP_AUTHENTICATE:
            self.log_in(*(login or ("", "")))

    def log_in(self, name, password):
        opcode, _, reader = self.roundtrip(OP_AUTH_RESPONSE, w_bytes(f"\0{name}\0{password}".encode()))
        if opcode == OP_ERROR:
            raise Refused(self.read_error(reader))
        if opcode != OP_AUTH_SUCCESS:
            raise Closed(f"AUTH_RESPONSE answered with opcode {opcode}")

    def close(self):
        self.sock.close()

    def recv_exactly(self, n):
        while len(self.buffer) < n:
            try:
                chunk = self.sock.recv(1 << 16)
            except (TimeoutError, OSError) as e:
                raise Closed(str(e)) from e
            if not chunk:
                raise Closed("connection closed")
            self.buffer += chunk
        out, self.buffer = self.buffer[:n], self.buffer[n:]
        return out

    def send_envelope(self, envelope):
        if not self.framed:
            self.sock.sendall(envelope)
            return
        limit = 131071
        for start in range(0, len(envelope), limit):
            part = envelope[start:start + limit]
            self_contained = 1 if len(envelope) <= limit else 0
            header = (len(part) | self_contained << 17).to_bytes(3, "little")
            out = header + crc24(header).to_bytes(3, "little")
            self.sock.sendall(out + part + crc32_payload(part).to_bytes(4, "little"))

    def recv_segment(self):
        header = self.recv_exactly(6)
        bits = int.from_bytes(header[:3], "little")
        if crc24(header[:3]) != int.from_bytes(header[3:], "little"):
            raise Closed("segment header with a wrong CRC")
        length = bits & 0x1FFFF
        payload = self.recv_exactly(length)
        if crc32_payload(payload) != int.from_bytes(self.recv_exactly(4), "little"):
            raise Closed("segment payload with a wrong CRC")
        return payload

    def recv_envelope(self):
        if not self.framed:
            header = self.recv_exactly(9)
            length = struct.unpack(">i", header[5:9])[0]
            return header, self.recv_exactly(length)
        data = self.recv_segment()
        while len(data) < 9 or len(data) < 9 + struct.unpack(">i", data[5:9])[0]:
            data += self.recv_segment()
        length = struct.unpack(">i", data[5:9])[0]
        return data[:9], data[9:9 + length]

    def roundtrip(self, opcode, body):
        """Sends one request; returns (opcode, flags, reader) of its answer."""
        header = struct.pack(">BBhBi", self.version, 0, 1, opcode, len(body))
        try:
            self.send_envelope(header + body)
        except OSError as e:
            raise Closed(str(e)) from e
        head, payload = self.recv_envelope()
        return head[4], head[1], Reader(payload)

    def request(self, opcode, body):
        opcode, flags, r = self.roundtrip(opcode, body)
        if flags & 0x02:
            r.take(16)
        warnings = r.string_list() if flags & 0x08 else []
        if flags & 0x04:
            for _ in range(r.u16()):
                r.string()
                r.bytes()
        if opcode == OP_ERROR:
            out = self.read_error(r)
        elif opcode == OP_RESULT:
            out = self.read_result(r)
        else:
            raise Closed(f"unexpected opcode {opcode}")
        out.warnings = warnings
        return out

    def read_error(self, r):
        code, message = r.i32(), r.string()
        detail = ""
        names = {v: k for k, v in CONSISTENCY.items()}
        if code == 0x2400:
            detail = f"ks={r.string()} table={r.string()}"
        elif code == 0x1000:
            detail = f"cl={names.get(r.u16())} required={r.i32()} alive={r.i32()}"
        elif code == 0x1400:
            detail = f"function={r.string()}.{r.string()} args={r.string_list()}"
        elif code == 0x2500:
            detail = f"id={r.short_bytes().hex()}"
        return Error(code, message, detail)

    def read_columns(self, r, flags, count):
        if flags & 0x0001:
            table = (r.string(), r.string())
            return [(table, r.string(), read_type(r)) for _ in range(count)]
        return [((r.string(), r.string()), r.string(), read_type(r)) for _ in range(count)]

    def read_rows_metadata(self, r, out):
        flags, count = r.i32(), r.i32()
        if flags & 0x0002:
            out.paging_state = r.bytes()
        if flags & 0x0008:
            out.result_metadata_id = r.short_bytes()
        out.column_count = count
        if not flags & 0x0004:
            out.columns = self.read_columns(r, flags, count)

    def read_result(self, r):
        kind = r.i32()
        if kind == 1:
            return Result("void")
        if kind == 2:
            out = Result("rows")
            self.read_rows_metadata(r, out)
            out.rows = [[r.bytes() for _ in range(out.column_count)] for _ in range(r.i32())]
            return out
        if kind == 3:
            out = Result("set_keyspace")
            out.keyspace = r.string()
            return out
        if kind == 4:
            out = Result("prepared")
            out.prepared_id = r.short_bytes()
            if self.version >= 5:
                out.result_metadata_id = r.short_bytes()
            flags, count = r.i32(), r.i32()
            if self.version >= 4:
                out.pk_indices = [r.u16() for _ in range(r.i32())]
            out.binds = self.read_columns(r, flags, count)
            self.read_rows_metadata(r, out)
            return out
        if kind == 5:
            out = Result("schema_change")
            change, target = r.string(), r.string()
            parts = [r.string()]
            if target != "KEYSPACE":
                parts.append(r.string())
            if target in ("FUNCTION", "AGGREGATE"):
                parts.append("(" + ", ".join(r.string_list()) + ")")
            out.change = " ".join([change, target] + parts)
            return out
        raise Closed(f"unknown result kind {kind}")

    def query_parameters(self, options, values, paging_state):
        flags, out = 0, b""
        if values is not None:
            flags |= 0x01
            if values and isinstance(values[0], tuple):
                flags |= 0x40
                out += struct.pack(">H", len(values)) + b"".join(w_string(n) + w_bytes(v) for n, v in values)
            else:
                out += struct.pack(">H", len(values)) + b"".join(w_bytes(v) for v in values)
        if options.skip_metadata:
            flags |= 0x02
        if options.page_size is not None:
            flags |= 0x04
            out += struct.pack(">i", options.page_size)
        if paging_state is not None:
            flags |= 0x08
            out += w_bytes(paging_state)
        return self.parameters(options, flags, out)

    def parameters(self, options, flags, out):
        """Returns the common parameters of QUERY, EXECUTE and BATCH: consistency and flags, `out`, and then the other options."""
        if options.serial is not None:
            flags |= 0x10
            out += struct.pack(">H", CONSISTENCY[options.serial])
        if options.timestamp is not None:
            flags |= 0x20
            out += struct.pack(">q", options.timestamp)
        if options.keyspace is not None:
            flags |= 0x80
            out += w_string(options.keyspace)
        if options.now_in_seconds is not None:
            flags |= 0x100
            out += struct.pack(">i", options.now_in_seconds)
        head = struct.pack(">H", CONSISTENCY[options.consistency])
        return head + (struct.pack(">I", flags) if self.version >= 5 else bytes([flags])) + out

    def query(self, cql, options=Options(), values=None, paging_state=None):
        return self.request(OP_QUERY, w_long_string(cql) + self.query_parameters(options, values, paging_state))

    def prepare(self, cql, keyspace=None):
        body = w_long_string(cql)
        if self.version >= 5:
            body += struct.pack(">I", 1 if keyspace else 0) + (w_string(keyspace) if keyspace else b"")
        return self.request(OP_PREPARE, body)

    def execute(self, prepared, options=Options(), values=None, paging_state=None):
        body = struct.pack(">H", len(prepared.prepared_id)) + prepared.prepared_id
        if self.version >= 5:
            body += struct.pack(">H", len(prepared.result_metadata_id)) + prepared.result_metadata_id
        return self.request(OP_EXECUTE, body + self.query_parameters(options, values, paging_state))

    def batch(self, kind, statements, options=Options()):
        """Sends a batch. `statements` are pairs of a prepared id or query text, and values."""
        body = bytes([kind]) + struct.pack(">H", len(statements))
        for what, values in statements:
            if isinstance(what, bytes):
                body += b"\x01" + struct.pack(">H", len(what)) + what
            else:
                body += b"\x00" + w_long_string(what)
            body += struct.pack(">H", len(values)) + b"".join(w_bytes(v) for v in values)
        return self.request(OP_BATCH, body + self.parameters(options, 0, b""))
