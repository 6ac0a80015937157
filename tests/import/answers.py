"""Answers of a server about all tables of the keyspace: the bytes of every value, with write times, and the times at which cells expire."""

import time

import cassandra.protocol

import features

# Types of columns with many cells, which have no `writetime` and `ttl`: each cell has its own.
MANY_CELLS = ("list<", "set<", "map<", "place", "outer_place")
# 3.11 and the first ones of 4.0 also refuse them of frozen collections.
FROZEN = ("frozen<list<", "frozen<set<", "frozen<map<")


class RawRows(cassandra.protocol.ResultMessage):
    """A result whose values are not decoded: strange values would not survive that."""

    def recv_results_rows(self, f, protocol_version, user_type_map, result_metadata, column_encryption_policy):
        self.recv_results_metadata(f, user_type_map)
        columns = self.column_metadata or result_metadata
        self.column_names = [column[2] for column in columns]
        self.column_types = [column[3] for column in columns]
        count = cassandra.protocol.read_int(f)
        self.parsed_rows = [[cassandra.protocol.read_value(f) for _ in columns] for _ in range(count)]


class RawProtocol(cassandra.protocol._ProtocolHandler):
    message_types_by_opcode = {**cassandra.protocol._ProtocolHandler.message_types_by_opcode, RawRows.opcode: RawRows}


def of(server, keyspace=features.KEYSPACE):
    """Returns the rows of each table, in the order of the server."""
    session = server.connect(keyspace, protocol_version=4)
    raw = server.connect(keyspace, protocol_version=4)
    raw.client_protocol_handler = RawProtocol
    raw.row_factory = lambda names, found: found
    is_old = session.execute("SELECT release_version FROM system.local").one().release_version.startswith(("3.", "4.0-"))
    return {name: rows(session, raw, name, columns, MANY_CELLS + (FROZEN if is_old else ())) for name, columns in tables(session, keyspace).items()}


def tables(session, keyspace):
    """Returns the types of the static and regular columns of each table. Views are no tables."""
    found = {}
    for row in session.execute(f"SELECT * FROM system_schema.columns WHERE keyspace_name = '{keyspace}'"):
        types = found.setdefault(row.table_name, {})
        if row.kind in ("regular", "static"):
            types[row.column_name] = row.type
    views = {row.view_name for row in session.execute(f"SELECT view_name FROM system_schema.views WHERE keyspace_name = '{keyspace}'")}
    return {name: types for name, types in sorted(found.items()) if name not in views}


def quoted(name):
    return '"' + name.replace('"', '""') + '"'


def rows(session, raw, table, types, untimed):
    """Returns the rows of a table. A row has the values of all columns by name, in hexadecimal, and the write times and times of expiry (s) of
    columns with one cell."""
    # Compact tables have columns in the schema that no statement can name.
    names = raw.execute(f"SELECT * FROM {quoted(table)} LIMIT 1").column_names
    timed = sorted(name for name in names if name in types and not types[name].startswith(untimed) and types[name] != "counter")
    values = [dict(zip(names, map(hexadecimal, row))) for row in raw.execute(f"SELECT * FROM {quoted(table)}")]
    if not timed:
        return [{"values": row} for row in values]
    asked = ", ".join(f"{function}({quoted(name)})" for name in timed for function in ("writetime", "ttl"))
    found = []
    for row, times in zip(values, session.execute(f"SELECT {asked} FROM {quoted(table)}"), strict=True):
        now_s = time.time()
        ends = [ttl_s if ttl_s is None else round(now_s + ttl_s) for ttl_s in times[1::2]]
        found.append({"values": row, "written_us": dict(zip(timed, times[::2])), "ends_s": dict(zip(timed, ends))})
    return found


def hexadecimal(value):
    """Returns the bytes of a value. `None` if it is null."""
    return value if value is None else value.hex()
