"""`helenus shell` as people use it: through pipes, with files, and at a terminal."""

import csv
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import time
from fcntl import ioctl
from termios import TIOCSWINSZ

import pytest

import helenus

ROWS = 250
LIMIT_S = 20


class Terminal:
    """The shell behind a pseudo-terminal of a size."""

    def __init__(self, target, home, *args, rows=24, columns=500, env=()):
        command = [str(helenus.binary()), "shell", f"{target.host}:{target.port}", *args]
        environment = {**helenus.clean_environment(), "HOME": str(home), "TERM": "xterm", **dict(env)}
        self.pid, self.file = pty.fork()
        if self.pid == 0:
            # A program that ignores it, such as nohup, hands that down.
            signal.signal(signal.SIGHUP, signal.SIG_DFL)
            # The size must be set before the shell reads it.
            ioctl(0, TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
            os.execve(command[0], command, environment)
        self.said = ""

    def wait_for(self, pattern):
        """Reads until the pattern has been said; returns what was said up to it, and forgets that."""
        deadline = time.monotonic() + LIMIT_S
        while not (found := re.search(pattern, self.said)):
            assert time.monotonic() < deadline, f"{pattern!r} was not said in {self.said!r}"
            if select.select([self.file], [], [], 0.1)[0]:
                self.said += os.read(self.file, 65536).decode(errors="replace")
        before, self.said = self.said[:found.end()], self.said[found.end():]
        return before

    def press(self, keys):
        os.write(self.file, keys.encode())

    def type_in(self, line, until=r"cql[\w:]*> "):
        """Types a line. Returns the output after its echo, up to the pattern."""
        self.press(line + "\n")
        self.wait_for("\n")
        return self.wait_for(until)

    def close(self):
        """Ends the shell: SIGHUP, as when the window is closed."""
        os.kill(self.pid, signal.SIGHUP)
        os.waitpid(self.pid, 0)
        os.close(self.file)


@pytest.fixture
def terminal(target, tmp_path):
    """Starts shells at terminals of the shared server."""
    opened = []

    def start(*args, **options):
        opened.append(Terminal(target, tmp_path, *args, **options))
        opened[-1].wait_for(r"cql[\w:]*> ")
        return opened[-1]

    yield start
    for one in opened:
        one.close()


@pytest.fixture
def shell(target, tmp_path):
    """Runs the shell without a terminal; returns what subprocess gives."""
    def run(*args, text=None, **options):
        command = [str(helenus.binary()), "shell", f"{target.host}:{target.port}", *args]
        options.setdefault("cwd", tmp_path)
        given = {"input": text} if text is not None else {"stdin": subprocess.DEVNULL}
        return subprocess.run(command, capture_output=True, text=True, timeout=60,
                              env={**helenus.clean_environment(), "HOME": str(tmp_path)}, **given, **options)
    return run


@pytest.fixture
def numbers(session, keyspace):
    """Makes a table with more rows than a page of the shell. Returns its name."""
    session.execute(f"CREATE TABLE {keyspace}.numbers (k int, c int, name text, PRIMARY KEY (k, c))")
    insert = session.prepare(f"INSERT INTO {keyspace}.numbers (k, c, name) VALUES (0, ?, ?)")
    helenus.execute_all(session, insert, [(c, f"name {c}") for c in range(ROWS)])
    return f"{keyspace}.numbers"


def test_piped_output_has_one_header(shell, numbers):
    lines = shell("-e", f"SELECT * FROM {numbers}").stdout.splitlines()
    assert [l for l in lines if not re.search(r"name \d", l)] == [" k |  c  |   name   ", "---+-----+----------", "", f"({ROWS} rows)"]
    paged = shell(text=f"PAGING 10;\nSELECT * FROM {numbers};\n").stdout
    assert len(re.findall(r"^ k \|", paged, re.M)) == 1 and len(re.findall(r"name \d", paged)) == ROWS


def test_formats(shell, session, keyspace):
    session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY, s text, m map<text, int>, b boolean, n text)")
    session.execute(f"INSERT INTO {keyspace}.t (k, s, m, b) VALUES (1, 'a \"b\",\nc', {{'x': 1}}, true)")
    select = f"SELECT k, s, m, b, n FROM {keyspace}.t"
    rows = list(csv.reader(io.StringIO(shell("--format", "csv", "-e", select).stdout)))
    assert rows == [["k", "s", "m", "b", "n"], ["1", 'a "b",\nc', "{'x': 1}", "true", ""]]
    line = json.loads(shell("--format", "json", "-e", select).stdout)
    assert line == {"k": 1, "s": 'a "b",\nc', "m": {"x": 1}, "b": True, "n": None}
    lines = [l.rstrip() for l in shell("-e", f"EXPAND ON; {select}").stdout.splitlines()]
    assert lines[1] == "@ Row 1" and " n | null" in lines and " b | true" in lines


def test_errors_name_file_and_line(shell, session, keyspace, tmp_path):
    (tmp_path / "inner.cql").write_text("-- nothing here\n\nSELECT 1 FROM nope.nope;\n")
    (tmp_path / "outer.cql").write_text("CONSISTENCY QUORUM\n\nSELECT\n  * FORM t;\nSOURCE 'inner.cql'\nCONSISTENCY MOST\n")
    done = shell("-f", "outer.cql")
    errors = [l for l in done.stderr.splitlines() if not l.startswith("Hint: ")]
    assert done.returncode == 2
    assert [e.split(" ")[0] for e in errors] == ["outer.cql:3:", "inner.cql:3:", "outer.cql:6:"]
    assert "Hint: did you mean FROM?" in done.stderr
    assert shell(text="SELECT 1;\nSELCT 1;\n").stderr.splitlines()[-1] == "Hint: did you mean SELECT?"
    assert "can't read none.cql" in shell("-f", "none.cql").stderr


def test_hints_of_names(shell, numbers):
    keyspace, table = numbers.split(".")
    assert f"Hint: did you mean {keyspace}.numbers?" in shell("-e", f"SELECT * FROM {keyspace}.numbrs").stderr
    assert "Hint: did you mean numbers?" in shell("-k", keyspace, "-e", "SELECT * FROM nubmers").stderr
    assert "Hint: did you mean name?" in shell("-k", keyspace, "-e", "SELECT nmae FROM numbers").stderr
    assert "Hint" not in shell("-k", keyspace, "-e", "SELECT * FROM otherwise").stderr


def test_traces_are_shown(shell, numbers):
    out = shell("-e", f"TRACING ON; SELECT * FROM {numbers} LIMIT 1").stdout
    trace = re.search(r"Tracing session: ([0-9a-f-]{36})", out)
    assert trace and "source_elapsed" in out and "Request complete" in out
    again = shell("-e", f"SHOW SESSION {trace[1]}").stdout
    assert out.endswith(again)
    assert shell("-e", "SHOW SESSION 9b7f0b2e-8c66-4f30-9b0a-0d1c2b3a4f5z").returncode == 2


def test_commands(shell, target):
    out = shell("-e", "SHOW VERSION; SHOW HOST; SERIAL CONSISTENCY LOCAL_SERIAL; CONSISTENCY; PAGING 7").stdout
    assert re.match(r"\[helenus shell [\d.]+ \| Cassandra 5\.0\.\S+ \| CQL spec 3\.\S+ \| Native protocol v\d\]\n", out)
    assert out.splitlines()[1:] == [f"Connected to {target.host}:{target.port}", "Serial consistency level is LOCAL_SERIAL",
                                    "Consistency level is ONE", "Paging is on: 7 rows a page"]
    refused = shell("-e", "CONSISTENCY SOME")
    assert refused.returncode == 2 and "LOCAL_QUORUM" in refused.stderr


def test_capture(shell, numbers, tmp_path):
    done = shell("-e", f"CAPTURE 'out.txt'; SELECT * FROM {numbers} WHERE k = 0 AND c = 7; CAPTURE; CAPTURE OFF; SELECT key FROM system.local")
    assert "Now capturing query output to 'out.txt'." in done.stdout and "name 7" not in done.stdout and "local" in done.stdout
    assert "name 7" in (tmp_path / "out.txt").read_text() and "local" not in (tmp_path / "out.txt").read_text()


def test_ctrl_c_cancels_what_is_typed_and_what_runs(terminal, numbers, tmp_path):
    one = terminal("-k", numbers.split(".")[0], env={"PAGER": ""})
    one.type_in("SELECT *", r"\.\.\. ")
    one.press("\x03")
    one.wait_for(r"cql:\w+> ")
    one.type_in("SELECT * FROM numbers;", "--- more: .* --- ")
    one.press("\x03")
    assert "(250 rows)" not in one.wait_for(r"cql:\w+> ")
    assert "Consistency level is ONE" in one.type_in("CONSISTENCY")
    assert "SELECT * FROM numbers;" in (tmp_path / ".helenus_history").read_text()


@pytest.mark.process
def test_ctrl_c_cancels_a_statement_that_is_not_answered(tmp_path):
    """A server that is stopped answers nothing."""
    server = helenus.Node(tmp_path / "stopped").start()
    try:
        one = Terminal(server, tmp_path)
        one.wait_for("cql> ")
        server.pause()
        one.press("SELECT key FROM system.local;\n")
        one.wait_for("local;")
        # The editor hands the terminal back before the statement goes out.
        one.wait_for(r"\x1b\[\?2004l")
        time.sleep(0.3)
        one.press("\x03")
        one.wait_for("Cancelled")
        one.wait_for("cql> ")
        server.resume()
        said = one.type_in("SELECT rack FROM system.local;", r"\(1 rows\)")
        assert " rack " in said and " key " not in said
        one.close()
    finally:
        server.resume()
        server.close()


def test_long_results_go_through_the_pager(terminal, numbers, tmp_path):
    pager = tmp_path / "pager"
    pager.write_text("#!/bin/sh\ncat > \"$HOME/paged\"\n")
    pager.chmod(0o755)
    one = terminal(env={"PAGER": str(pager)})
    assert "name 7" not in one.type_in(f"SELECT * FROM {numbers};")
    paged = (tmp_path / "paged").read_text()
    assert len(re.findall(r"^ k \|", paged, re.M)) == 1 and f"({ROWS} rows)" in paged
    assert "name 7" in one.type_in(f"SELECT * FROM {numbers} WHERE k = 0 AND c = 7;")


def test_tab_completes_by_context(terminal, numbers):
    keyspace, _ = numbers.split(".")
    one = terminal("-k", keyspace)
    one.press("SELECT * FROM numb\t LIMIT 1;\n")
    assert "(1 rows)" in one.wait_for(r"rows\)")
    one.wait_for("> ")
    one.press("select na\t from numbers where k = 0 and c = 7;\n")
    assert "name 7" in one.wait_for(r"rows\)")
    one.wait_for("> ")
    one.press("USE system_sch\t;\n")
    one.wait_for("cql:system_schema> ")


@pytest.mark.process
def test_login_and_its_history(tmp_path):
    args = ["--set", "authenticator=PasswordAuthenticator", "--set", "authorizer=CassandraAuthorizer"]
    server = helenus.Node(tmp_path / "node", args=args).start()
    try:
        one = Terminal(server, tmp_path, "-u", "cassandra", "-p", "cassandra")
        one.wait_for("cql> ")
        one.type_in("CREATE ROLE ann WITH PASSWORD = 'unutterable' AND LOGIN = true;")
        assert "incorrect" in one.type_in("LOGIN ann 'mistaken'")
        one.type_in("LOGIN ann 'unutterable'")
        assert "Unauthorized" in one.type_in("CREATE ROLE bob;")
        one.type_in("LOGIN cassandra", "Password of cassandra: ")
        one.type_in("cassandra")
        assert "Unauthorized" not in one.type_in("CREATE ROLE bob;")
        one.close()
        history = (tmp_path / ".helenus_history").read_text()
        assert "LOGIN ann" in history and "mistaken" not in history and "unutterable" not in history
    finally:
        server.close()


@pytest.fixture
def full(session, keyspace):
    """Makes a table with values that are hard to write as CSV. Returns its name."""
    session.execute(f"""CREATE TABLE {keyspace}.everything (k int PRIMARY KEY, s text, b blob, t timestamp, d double, i inet, o boolean,
        u uuid, l list<text>, m map<text, frozen<set<int>>>, p tuple<int, text>, "Mixed" date, x duration, v vector<float, 2>)""")
    session.execute(f"INSERT INTO {keyspace}.everything (k, s) VALUES (1, 'plain')")
    session.execute(f"""INSERT INTO {keyspace}.everything (k, s, b, t, d, i, o, u, l, m, p, "Mixed", x, v) VALUES (2, 'a "b",\n\\c', 0x00ff,
        '2024-02-29T12:34:56.789+0000', 1.5, '::1', true, 9b7f0b2e-8c66-4f30-9b0a-0d1c2b3a4f5e, ['it''s', 'x, y]'],
        {{'a: b': {{2, 1}}}}, (7, null), '2024-02-29', 1mo2d3s, [1.5, 2])""")
    return f"{keyspace}.everything"


def emptied(session, table):
    """Returns the rows of a table, and truncates it."""
    rows = set(map(str, session.execute(f"SELECT * FROM {table}")))
    session.execute(f"TRUNCATE {table}")
    return rows


@pytest.mark.parametrize("options", ["HEADER = true", "HEADER = true AND DELIMITER = '|' AND QUOTE = '''' AND NULL = 'nil'",
                                     "ESCAPE = '\"' AND PAGESIZE = 1"])
def test_copy_there_and_back(shell, session, full, options):
    out = shell("-e", f"COPY {full} TO 'f.csv' WITH {options}")
    assert out.stdout.startswith("2 rows exported to 1 file in ") and out.stderr == ""
    before = emptied(session, full)
    options = options.replace(" AND PAGESIZE = 1", "")
    back = shell("-e", f"COPY {full} FROM 'f.csv' WITH {options}")
    assert back.stdout.startswith("2 rows imported from 1 file in ") and (back.returncode, back.stderr) == (0, "")
    assert set(map(str, session.execute(f"SELECT * FROM {full}"))) == before


def test_copy_of_columns_and_parts(shell, session, numbers, tmp_path):
    csv_text = shell("-e", f"COPY {numbers} (c, k) TO STDOUT WITH MAXROWS = 3 AND HEADER = true").stdout
    assert csv_text == "c,k\n0,0\n1,0\n2,0\n"
    session.execute(f"TRUNCATE {numbers}")
    given = "x,1,9\n7,1,Ann\n8,1,\n9,1,Bob\n10,1,Carl\n"
    path = tmp_path / "in.csv"
    path.write_text(given)
    done = shell("-e", f"COPY {numbers} (c, k, name) FROM '{path}' WITH SKIPROWS = 1 AND MAXROWS = 2 AND TTL = 1000")
    assert done.stdout.startswith("2 rows imported"), done.stderr
    rows = list(session.execute(f"SELECT c, name, ttl(name) AS left FROM {numbers} WHERE k = 1"))
    assert [(r.c, r.name) for r in rows] == [(7, "Ann"), (8, None)] and rows[0].left > 900
    shell("-e", f"COPY {numbers} (c, k, name) FROM '{path}' WITH SKIPROWS = 3 AND SKIPCOLS = 'name' AND INGESTRATE = 10")
    assert [r.name for r in session.execute(f"SELECT name FROM {numbers} WHERE k = 1 AND c >= 9")] == [None, None]


def test_copy_tells_what_it_can_not_take(shell, session, numbers, tmp_path):
    session.execute(f"TRUNCATE {numbers}")
    (tmp_path / "in.csv").write_text("k,c,name\n1,1,Ann\n1,x,Bob\n1,3\n,4,Dora\n1,5,Eve\n")
    done = shell("-e", f"COPY {numbers} FROM 'in.csv' WITH HEADER = true AND ERRFILE = 'not.csv'")
    assert done.returncode == 2 and done.stdout.startswith("2 rows imported")
    assert "3 rows were not taken; they are in not.csv" in done.stderr and "Unable to make int from 'x'" in done.stderr
    assert (tmp_path / "not.csv").read_text() == "1,x,Bob\n1,3\n,4,Dora\n"
    few = shell("-e", f"COPY {numbers} FROM 'in.csv' WITH HEADER = true AND MAXPARSEERRORS = 0")
    assert few.returncode == 2 and "more than 0 rows can't be read" in few.stderr
    assert "no column nope" in shell("-e", f"COPY {numbers} (k, nope) FROM 'in.csv'").stderr
    assert "the options are" in shell("-e", f"COPY {numbers} FROM 'in.csv' WITH COLOUR = 1").stderr
    assert "none.csv" in shell("-e", f"COPY {numbers} FROM 'none.csv'").stderr


def test_copy_counts_counters(shell, session, keyspace, tmp_path):
    session.execute(f"CREATE TABLE {keyspace}.counts (k int PRIMARY KEY, n counter)")
    (tmp_path / "in.csv").write_text("1,5\n1,6\n2,-1\n")
    assert shell("-e", f"COPY {keyspace}.counts FROM 'in.csv'").stdout.startswith("3 rows imported")
    assert sorted((r.k, r.n) for r in session.execute(f"SELECT * FROM {keyspace}.counts")) == [(1, 11), (2, -1)]


def interrupted(terminal, command, mark):
    """Presses Ctrl-C in a COPY after its first mark. Returns its output."""
    terminal.press(command + "\n")
    deadline = time.monotonic() + LIMIT_S
    while not mark.exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    terminal.press("\x03")
    said = terminal.wait_for("Cancelled")
    terminal.wait_for(r"cql[\w:]*> ")
    return said


def test_copy_goes_on_after_an_interruption(terminal, session, numbers, tmp_path):
    path, one = tmp_path / "in.csv", terminal()
    path.write_text("".join(f"1,{c},name {c}\n" for c in range(2000)))
    copy = f"COPY {numbers} FROM '{path}' WITH CHUNKSIZE = 50 AND NUMPROCESSES = 1"
    said = interrupted(one, f"{copy} AND INGESTRATE = 200;", tmp_path / "in.csv.resume")
    assert "WITH RESUME = true goes on there" in said
    count = session.execute(f"SELECT count(*) FROM {numbers} WHERE k = 1").one()[0]
    assert 0 < count < 2000
    said = one.type_in(f"{copy} AND RESUME = true;")
    imported = int(re.search(r"(\d+) rows imported", said)[1])
    assert imported < 2000 and session.execute(f"SELECT count(*) FROM {numbers} WHERE k = 1").one()[0] == 2000
    assert "nothing to resume" in one.type_in(f"{copy} AND RESUME = true;")


def test_copy_to_goes_on_after_an_interruption(terminal, session, numbers, tmp_path):
    """Pages of one row, so that there is time for Ctrl-C."""
    path, one = tmp_path / "out.csv", terminal()
    insert = session.prepare(f"INSERT INTO {numbers} (k, c, name) VALUES (2, ?, ?)")
    helenus.execute_all(session, insert, [(c, f"name {c}") for c in range(3000)])
    said = interrupted(one, f"COPY {numbers} TO '{path}' WITH PAGESIZE = 1;", tmp_path / "out.csv.resume")
    assert "WITH RESUME = true goes on there" in said
    one.type_in(f"COPY {numbers} TO '{path}' WITH RESUME = true;", "rows exported")
    lines = path.read_text().splitlines()
    assert len(lines) == len(set(lines)) == 3000 + ROWS


@pytest.fixture
def cqlsh_in(target):
    """Runs a statement by cqlsh in a folder."""
    program = os.path.join(os.path.dirname(sys.executable), "cqlsh")
    if not os.path.exists(program):
        pytest.skip("cqlsh: skipped, it needs Python 3.11 or older")

    def run(folder, statement):
        subprocess.run([sys.executable, program, target.host, str(target.port), "--request-timeout=60", "-e", statement], check=True,
                       capture_output=True, timeout=60, cwd=folder, env={**os.environ, "LC_ALL": "C.UTF-8", "TZ": "UTC"})

    return run


def test_copy_and_cqlsh_read_each_other(cqlsh_in, shell, session, full, tmp_path):
    def cqlsh(statement):
        cqlsh_in(tmp_path, statement)

    # cqlsh writes a line break in a text as \\n, and does not read it back.
    session.execute(f"UPDATE {full} SET s = 'a \"b\", c' WHERE k = 2")
    session.execute(f"DELETE p, x, v FROM {full} WHERE k = 2")
    columns = f"{full} (k, s, b, t, d, i, o, u, l, m, \"Mixed\")"
    cqlsh(f"COPY {columns} TO 'theirs.csv'")
    shell("-e", f"COPY {columns} TO 'ours.csv'")
    before = emptied(session, full)
    assert shell("-e", f"COPY {columns} FROM 'theirs.csv'").stderr == ""
    assert emptied(session, full) == before
    cqlsh(f"COPY {columns} FROM 'ours.csv'")
    assert emptied(session, full) == before


def test_copy_and_cqlsh_read_null_fields_of_each_other(cqlsh_in, shell, session, keyspace, tmp_path):
    session.execute(f"CREATE TYPE {keyspace}.inner (x int, \"Mixed\" text)")
    session.execute(f"CREATE TYPE {keyspace}.address (street text, zip int, at frozen<inner>, tags frozen<set<text>>)")
    table = f"{keyspace}.people"
    session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY, a frozen<address>, l list<frozen<address>>, m map<text, frozen<inner>>)")
    values = ["{street: 'Elm, 1', zip: 2, at: {x: 3, \"Mixed\": 'm'}, tags: {'a', 'b'}}", "{street: 'Elm'}", "{zip: 7, at: {x: 1}}",
              "{at: {\"Mixed\": 'it''s'}}", "{tags: {'null'}}"]
    for k, value in enumerate(values):
        session.execute(f"INSERT INTO {table} (k, a, l, m) VALUES ({k}, {value}, [{value}], {{'p': {{x: 1}}, 'q': {{\"Mixed\": 'null'}}}})")
    for null in ("", "nil"):
        options = f"WITH HEADER = true AND NULL = '{null}'"
        cqlsh_in(tmp_path, f"COPY {table} TO 'theirs.csv' {options}")
        shell("-e", f"COPY {table} TO 'ours.csv' {options}")
        before = emptied(session, table)
        back = shell("-e", f"COPY {table} FROM 'theirs.csv' {options}")
        assert back.stderr == "", back.stderr
        assert emptied(session, table) == before
        cqlsh_in(tmp_path, f"COPY {table} FROM 'ours.csv' {options}")
        assert emptied(session, table) == before
        shell("-e", f"COPY {table} FROM 'ours.csv' {options}")
        assert {str(row) for row in session.execute(f"SELECT * FROM {table}")} == before
