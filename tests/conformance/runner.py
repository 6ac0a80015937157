"""Runs a case against a server and puts each statement's outcome into canonical text."""

import hashlib
import re
import time

from .cases import expand
from .codec import encode, parse_type, show, split_top
from .wire import Closed, Connection, Error, ERROR_NAMES, Options, Refused

BATCH_KINDS = {"logged": 0, "unlogged": 1, "counter": 2, "unknown": 3}


class Outcome:
    """Outcome of one execution of one statement. `head` identifies it, and `lines` is its canonical text."""

    def __init__(self, head, lines, line=0, unordered=False, code_only=False):
        self.head, self.lines, self.line = head, lines, line
        self.unordered, self.code_only = unordered, code_only


def one_line(text):
    return text.replace("\\", "\\\\").replace("\r", "\\r").replace("\n", "\\n")


def shown_warnings(answer):
    """Returns the warnings that do not vary. Two are left out: of the first PREPARE or EXECUTE after USE (which depends on earlier
    statements), and of views that are experimental in Cassandra.
    """
    left_out = ("`USE <keyspace>`", "Materialized views are experimental")
    kept = [w for w in answer.warnings if not w.startswith(left_out)]
    return [f"warning: {one_line(w)}" for w in kept]


def abbreviated(text):
    """Returns the text. A long one is replaced by its beginning, length and digest."""
    if len(text) <= 3000:
        return text
    return f"{text[:40]}... ({len(text)} characters, md5 {hashlib.md5(text.encode()).hexdigest()})"


def run_case(case, host, port, keep=False, timeout=60):
    """Returns the outcomes of all executions of `case`."""
    return Execution(case, host, port, timeout).run(keep)


class Execution:
    def __init__(self, case, host, port, timeout):
        self.case, self.host, self.port, self.timeout = case, host, port, timeout
        self.version = int(case.options.get("protocol", "4"))
        self.connection = None
        self.outcomes = []

    def connect(self):
        self.connection = Connection(self.host, self.port, self.version, self.timeout, self.case.login)

    def as_user(self, step):
        """Runs a step on a connection of somebody else's: `name/password`."""
        own, self.connection = self.connection, None
        try:
            self.connection = Connection(self.host, self.port, self.version, self.timeout, step.get("user").split("/"))
            self.use()
            self.attempt(step)
        except Refused as e:
            self.record(step, step.text, self.lines(step, e.error))
        finally:
            if self.connection:
                self.connection.close()
            self.connection = own

    def drop_roles(self):
        for name in self.case.options.get("roles", "").split():
            self.must(f"DROP ROLE IF EXISTS {name}")

    def must(self, cql):
        answer = self.connection.query(cql)
        if isinstance(answer, Error):
            raise RuntimeError(f"{cql}: {answer.message}")

    def use(self):
        if "nouse" not in self.case.options:
            self.must(f"USE {self.case.keyspace}")

    def extra_keyspaces(self):
        names = self.case.options.get("keyspaces", "").split()
        return [n.replace("%ks", self.case.keyspace) for n in names]

    def run(self, keep):
        self.connect()
        self.drop_roles()
        replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
        for name in [self.case.keyspace] + self.extra_keyspaces():
            self.must(f"DROP KEYSPACE IF EXISTS {name}")
        self.must(f"CREATE KEYSPACE {self.case.keyspace} WITH replication = {replication}")
        self.use()
        for step in self.case.steps:
            self.step(step)
        if not keep:
            try:
                for name in [self.case.keyspace] + self.extra_keyspaces():
                    self.must(f"DROP KEYSPACE IF EXISTS {name}")
                self.drop_roles()
            except Closed:
                pass
        self.connection.close()
        return self.outcomes

    def record(self, step, head, lines):
        self.outcomes.append(Outcome(one_line(head), lines, step.line, "unordered" in step.directives,
                                     "code_only" in step.directives))

    def step(self, step):
        if step.get("wait"):
            time.sleep(float(step.get("wait")))
        for _ in range(int(step.get("times", "1"))):
            try:
                self.as_user(step) if step.get("user") else self.attempt(step)
            except Closed as e:
                self.record(step, step.text, [f"closed: {e}"])
                self.connect()
                self.use()

    def attempt(self, step):
        options = Options(
            consistency=step.get("consistency", "ONE"), serial=step.get("serial"),
            page_size=int(step.get("page_size")) if step.get("page_size") else None,
            timestamp=int(step.get("timestamp")) if step.get("timestamp") else None,
            now_in_seconds=int(step.get("now")) if step.get("now") else None,
            skip_metadata="skip_metadata" in step.directives,
            keyspace=step.get("keyspace", "").replace("%ks", self.case.keyspace) or None)
        if "batch" in step.directives:
            self.record(step, f"{step.get('batch').upper()}: {step.text}", self.batch(step, options))
        elif any(k in step.directives for k in ("params", "named", "prepare")):
            self.prepared(step, options)
        elif step.get("values") is not None:
            for text in step.get("values"):
                values = [self.typed(v) for v in split_top(expand(text), ",")]
                lines = self.outcome(step, lambda p: self.connection.query(step.sent, options, values, p))
                self.record(step, f"{step.text} -- {text}", lines)
        elif step.get("named_values") is not None:
            for text in step.get("named_values"):
                pairs = [p.split("=", 1) for p in split_top(expand(text), ",")]
                values = [(name.strip(), self.typed(v)) for name, v in pairs]
                lines = self.outcome(step, lambda p: self.connection.query(step.sent, options, values, p))
                self.record(step, f"{step.text} -- {text}", lines)
        elif step.get("retry"):
            self.retried(step, options)
        else:
            self.record(step, step.text, self.outcome(step, lambda p: self.connection.query(step.sent, options, None, p)))

    def retried(self, step, options):
        """Runs until there is neither an error nor an empty result, or until the time is over."""
        end = time.time() + float(step.get("retry"))
        while True:
            lines = self.outcome(step, lambda p: self.connection.query(step.sent, options, None, p))
            if time.time() > end or (not lines[0].startswith("error") and len(lines) > 1):
                break
            time.sleep(0.2)
        self.record(step, step.text, lines)

    @staticmethod
    def typed(text):
        if text in ("null", "unset"):
            return encode(None, text)
        kind, _, value = text.partition(" ")
        return encode(parse_type(kind), value)

    def batch(self, step, options):
        """Sends the statements between `;;` as one BATCH request. Values follow `<-`, and `@` marks a prepared statement."""
        statements = []
        for part in step.sent.split(";;"):
            text, _, values = (p.strip() for p in part.partition("<-"))
            values = split_top(values, ",")
            if not text.startswith("@"):
                statements.append((text, [self.typed(v) for v in values]))
                continue
            prepared = self.connection.prepare(text[1:], options.keyspace)
            if isinstance(prepared, Error):
                return self.lines(step, prepared)
            statements.append((prepared.prepared_id, [self.bound(prepared, i, v) for i, v in enumerate(values)]))
        statements = [] if step.sent == "nothing" else statements
        return self.lines(step, self.connection.batch(BATCH_KINDS[step.get("batch")], statements, options))

    def prepared(self, step, options):
        answer = self.connection.prepare(step.sent, options.keyspace)
        if isinstance(answer, Error):
            self.record(step, f"PREPARE {step.text}", self.lines(step, answer))
            return
        self.record(step, f"PREPARE {step.text}", self.describe_prepared(answer))
        for text in step.get("params", []):
            texts = split_top(expand(text), ",")
            values = [self.bound(answer, i, t) for i, t in enumerate(texts)]
            lines = self.outcome(step, lambda p: self.connection.execute(answer, options, values, p), answer.columns)
            self.record(step, f"{step.text} -- {text}", lines)
        for text in step.get("named", []):
            pairs = [p.split("=", 1) for p in split_top(expand(text), ",")]
            types = {name: t for _, name, t in answer.binds}
            values = [(k.strip(), encode(types.get(k.strip(), parse_type("int")), v)) for k, v in pairs]
            lines = self.outcome(step, lambda p: self.connection.execute(answer, options, values, p), answer.columns)
            self.record(step, f"{step.text} -- {text}", lines)

    def bound(self, prepared, index, text):
        """Encodes by the declared type unless the text names one, as in `int(5)`."""
        m = re.fullmatch(r"as\((\w[\w<>, ]*); (.*)\)", text)
        if m:
            return encode(parse_type(m.group(1)), m.group(2))
        t = prepared.binds[index][2] if index < len(prepared.binds) else parse_type("int")
        return encode(t, text)

    @staticmethod
    def describe_prepared(answer):
        binds = ", ".join(f"{name} {t}" for _, name, t in answer.binds)
        tables = {".".join(table) for table, _, _ in answer.binds}
        out = [f"prepared [{' '.join(sorted(tables))}] pk={answer.pk_indices} binds: {binds}"]
        if answer.columns:
            out.append("result: " + ", ".join(f"{name} {t}" for _, name, t in answer.columns))
        return out + shown_warnings(answer)

    def outcome(self, step, send, known_columns=()):
        """Returns all pages of an answer as lines."""
        answer = send(None)
        lines = self.lines(step, answer, known_columns=known_columns)
        pages = 0
        while not isinstance(answer, Error) and answer.kind == "rows" and answer.paging_state is not None:
            pages += 1
            if pages > 500:
                lines.append("too many pages")
                break
            answer = send(answer.paging_state)
            page = self.lines(step, answer, first=False, known_columns=known_columns)
            # Servers may send an empty page after a full last one.
            is_end = not isinstance(answer, Error) and answer.paging_state is None and not answer.rows
            lines += [] if is_end else ["-- more"] + page
        return lines

    def lines(self, step, answer, first=True, known_columns=()):
        warnings = shown_warnings(answer)
        if isinstance(answer, Error):
            detail = f" [{answer.detail}]" if answer.detail else ""
            return [f"error {ERROR_NAMES.get(answer.code, hex(answer.code))}{detail}: {one_line(answer.message)}"] + warnings
        if answer.kind == "schema_change":
            return [f"schema_change {answer.change}"] + warnings
        if answer.kind == "set_keyspace":
            return [f"set_keyspace {answer.keyspace}"] + warnings
        if answer.kind != "rows":
            return [answer.kind] + warnings
        out = []
        if first:
            tables = {".".join(table) for table, _, _ in answer.columns}
            columns = "".join(f" | {name} {t}" for _, name, t in answer.columns)
            out.append(f"rows {' '.join(sorted(tables))}{columns}" if answer.columns else "rows (no metadata)")
        shape = answer.columns or known_columns
        return out + warnings + [self.row(step, shape, row) for row in answer.rows]

    @staticmethod
    def row(step, columns, row):
        masked = step.get("mask")
        masked_names = None if masked is None else [m.strip() for m in masked.split(",") if m.strip()]
        approximate = [m.strip() for m in step.get("approx", "").split(",")]
        out = []
        for (_, name, t), value in zip(columns, row):
            text = abbreviated(show(t, value))
            if masked_names is not None and (not masked_names or name in masked_names) and text != "null":
                text = "<masked>"
            elif name in approximate and re.fullmatch(r"\d+", text):
                text = f"<= {-(-int(text) // 100) * 100}"
            out.append(text)
        return "| " + " | ".join(out)
