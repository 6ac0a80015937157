"""History shows no more than the present. Roles and permissions are tested for many pairs of an earlier and a present table, in every
statement that reads history.

The rule is a model of a few lines. Permissions belong to the table that is read, not to a present table with the same name. A column is
masked if it was masked at that time or is masked today.
"""

import itertools
import json
import time
import urllib.error
import urllib.request
from typing import NamedTuple

import pytest
from cassandra import InvalidRequest, Unauthorized

import helenus
from indexed_table import KEYSPACE
from tool import at, done, said

pytestmark = pytest.mark.process

# The permissions of each role, on the table, on its keyspace, or on all keyspaces. `creator` creates tables and keyspaces in the place of what was dropped.
ROLES = {
    "stranger": set(),
    "creator": {("CREATE", "all")},
    "of_table": {("SELECT", "table")},
    "of_table_plain": {("SELECT", "table"), ("UNMASK", "table")},
    "of_keyspace": {("SELECT", "keyspace")},
    "of_keyspace_search": {("SELECT", "keyspace"), ("SELECT_MASKED", "keyspace")},
    "of_keyspace_plain": {("SELECT", "keyspace"), ("UNMASK", "keyspace"), ("CREATE", "all")},
    "of_all": {("SELECT", "all")},
    "of_all_plain": {("SELECT", "all"), ("UNMASK", "all")},
    "cassandra": {(permission, "all") for permission in ("CREATE", "SELECT", "UNMASK")},
}
# Levels at which permissions count, by what still exists: the table, only its keyspace, or nothing.
COUNTS = {"table": {"table", "keyspace", "all"}, "keyspace": {"keyspace", "all"}, "nothing": {"all"}}

CREATE = "CREATE TABLE {ks}.t (k int, c text, v text, PRIMARY KEY (k, c))"
VIEW = "CREATE MATERIALIZED VIEW {ks}.w AS SELECT * FROM {ks}.t WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k)"
DROP = "DROP TABLE {ks}.t"
DROP_KEYSPACE = "DROP KEYSPACE {ks}"
MASK = "ALTER TABLE {ks}.t ALTER v MASKED WITH DEFAULT"
SHOW = "ALTER TABLE {ks}.t ALTER v DROP MASKED"
NAMESAKE = "creator: " + CREATE
KEYSPACE_NAMESAKE = "creator: " + KEYSPACE.format("{ks}")
VALUES = {"v": "secret", "c": "key"}


class Case(NamedTuple):
    """Changes of a table before and after the time that is read."""

    name: str
    then: tuple = ()
    now: tuple = ()
    left: str = "table"
    hidden: bool = False
    column: str = "v"


CASES = [
    Case("as it was", (VIEW,)),
    Case("masked then", (VIEW, MASK), (SHOW,), hidden=True),
    Case("masked since", (VIEW,), (MASK,), hidden=True),
    Case("masked since, without the view", (VIEW,), ("DROP MATERIALIZED VIEW {ks}.w", MASK), hidden=True),
    Case("masked by another mask since", (MASK,), ("ALTER TABLE {ks}.t ALTER v MASKED WITH mask_replace('x')",), hidden=True),
    Case("key renamed and masked", (), ("ALTER TABLE {ks}.t RENAME c TO d", "ALTER TABLE {ks}.t ALTER d MASKED WITH DEFAULT"), hidden=True, column="c"),
    Case("column dropped", (), ("ALTER TABLE {ks}.t DROP v",)),
    Case("masked column dropped", (MASK,), ("ALTER TABLE {ks}.t DROP v",), hidden=True),
    Case("column masked and dropped", (), (MASK, "ALTER TABLE {ks}.t DROP v"), hidden=True),
    Case("column masked, dropped and added", (), (MASK, "ALTER TABLE {ks}.t DROP v", "ALTER TABLE {ks}.t ADD v text"), hidden=True),
    Case("truncated", (), ("TRUNCATE {ks}.t",)),
    Case("dropped", (), (DROP,), "keyspace"),
    Case("masked and dropped", (), (MASK, DROP), "keyspace", hidden=True),
    Case("created again", (), (DROP, NAMESAKE), "keyspace"),
    Case("masked then, created again", (MASK,), (DROP, NAMESAKE), "keyspace", hidden=True),
    Case("created again, masked", (), (DROP, NAMESAKE, MASK), "keyspace"),
    Case("created again with its id", (), (DROP, NAMESAKE + " WITH id = {id}"), "keyspace"),
    Case("keyspace dropped", (VIEW,), (DROP_KEYSPACE,), "nothing"),
    Case("keyspace created again", (VIEW,), (DROP_KEYSPACE, KEYSPACE_NAMESAKE, NAMESAKE), "nothing"),
    Case("keyspace of a masked table created again", (MASK,), (DROP_KEYSPACE, KEYSPACE_NAMESAKE, NAMESAKE), "nothing", hidden=True),
    Case("keyspace created again with the table's id", (), (DROP_KEYSPACE, KEYSPACE_NAMESAKE, NAMESAKE + " WITH id = {id}"), "nothing"),
]
# Roles for the statements that differ in form alone.
FEW = ("creator", "of_keyspace", "of_keyspace_plain")
FORMS = ("SELECT JSON {c} FROM {t} {as_of}", "SELECT max({c}) FROM {t} {as_of} WHERE k = 1", "SELECT k, {c} FROM {t} {as_of}")


def now_ms():
    time.sleep(0.005)
    found = int(time.time() * 1000)
    time.sleep(0.005)
    return found


class World:
    """A node where roles log in, with a table in a keyspace for each case."""

    def __init__(self, folder):
        settings = ["--set", "dynamic_data_masking_enabled=true", "--set", "point_in_time_window=1h"]
        self.node = helenus.Node(folder / "data", args=helenus.SECURED + settings).start()
        self.sessions = {"cassandra": self.log_in("cassandra")}
        self.root = self.sessions["cassandra"]
        self.names, self.ids = itertools.count(), {}
        helenus.wait_until(lambda: "Can be read from : 2" in done(self.node, "pointintime"), 20, "the first moment is kept", 0.1)
        self.root.execute(KEYSPACE.format("copies"))
        for role, permissions in ROLES.items():
            if role != "cassandra":
                self.root.execute(f"CREATE ROLE {role} WITH PASSWORD = '{role}' AND LOGIN = true")
                self.root.execute(f"GRANT CREATE ON KEYSPACE copies TO {role}")
                for permission, _ in {one for one in permissions if one[1] == "all"}:
                    self.root.execute(f"GRANT {permission} ON ALL KEYSPACES TO {role}")
                self.sessions[role] = self.log_in(role)

    def log_in(self, role):
        session = helenus.log_in(self.node, role, role)
        # Hashing passwords takes long on a busy machine.
        session.default_timeout = 60
        return session

    def close(self):
        for session in self.sessions.values():
            session.cluster.shutdown()
        self.node.close()

    def run(self, keyspace, statements):
        for statement in statements:
            role = "creator" if statement.startswith("creator: ") else "cassandra"
            text = statement.removeprefix("creator: ").replace("{ks}", keyspace).replace("{id}", str(self.ids.get(keyspace)))
            self.sessions[role].execute(text)

    def begin(self, keyspace, then=()):
        """Makes the table as of that time."""
        self.run(keyspace, (KEYSPACE.format("{ks}"), CREATE, *then, "INSERT INTO {ks}.t (k, c, v) VALUES (1, 'key', 'secret')"))
        self.ids[keyspace] = self.root.execute(f"SELECT id FROM system_schema.tables WHERE keyspace_name = '{keyspace}' AND table_name = 't'").one().id
        self.grant(keyspace)

    def grant(self, keyspace):
        """Grants the roles their permissions on whatever exists."""
        for role, permissions in ROLES.items():
            for permission, level in permissions:
                on = {"table": f"{keyspace}.t", "keyspace": f"KEYSPACE {keyspace}"}.get(level)
                if on:
                    try:
                        self.root.execute(f"GRANT {permission} ON {on} TO {role}")
                    except InvalidRequest as missing:
                        assert "doesn't exist" in str(missing)

    def rows(self, role, statement):
        """Returns the rows that a role reads, or None if it may not read them."""
        try:
            return [tuple(row) for row in self.sessions[role].execute(statement)]
        except Unauthorized as refused:
            assert role in str(refused)
            return None

    def does(self, role, statement):
        return self.rows(role, statement) is not None


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = World(tmp_path_factory.mktemp("past"))
    yield world
    world.close()


@pytest.fixture(scope="module")
def cases(world):
    """Returns keyspaces whose tables have a history, and the two clauses that read the same time."""
    keyspaces = {case: f"s{number}" for number, case in enumerate(CASES)}
    for case, keyspace in keyspaces.items():
        world.begin(keyspace, case.then)
    done(world.node, "snapshot", "-t", "then")
    spellings = (f"AS OF {now_ms()}", "AS OF SNAPSHOT then")
    for case, keyspace in keyspaces.items():
        world.run(keyspace, case.now)
        world.grant(keyspace)
    return keyspaces, spellings


def may(role, permission, left):
    return any(one == permission and level in COUNTS[left] for one, level in ROLES[role])


def sees(case, role, rows, name="t", left=None):
    """Returns true if the rows are those that a role may see of a table."""
    left = left or case.left
    if not may(role, "SELECT", left):
        return rows is None
    # Permissions to unmask are a view's own.
    plain = not case.hidden or may(role, "UNMASK", "keyspace" if name == "w" and left == "table" else left)
    return bool(rows) and (VALUES[case.column] in str(rows)) == plain


def searches(case, role, left=None):
    left = left or case.left
    return may(role, "SELECT", left) and (not case.hidden or may(role, "UNMASK", left) or may(role, "SELECT_MASKED", left))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_rows_and_searches_of_history(world, cases, case):
    keyspaces, spellings = cases
    table, column = f"{keyspaces[case]}.t", case.column
    search = "v = 'secret'" if column == "v" else "k = 1 AND c = 'key'"
    for as_of, role in itertools.product(spellings, ROLES):
        row = f"SELECT {column} FROM {table} {as_of} WHERE k = 1"
        where = f"SELECT k FROM {table} {as_of} WHERE {search} ALLOW FILTERING"
        assert sees(case, role, world.rows(role, row)), (role, row)
        assert world.does(role, where) == searches(case, role), (role, where)
        if role not in FEW:
            continue
        for form in FORMS:
            text = form.format(c=column, t=table, as_of=as_of)
            assert sees(case, role, world.rows(role, text)), (role, text)
        prepared = world.sessions[role].prepare(f"SELECT {column} FROM {table} {as_of} WHERE k = ?")
        assert sees(case, role, world.rows(role, prepared.bind((1,)))), (role, as_of)
        if VIEW in case.then:
            of_view = f"SELECT {column} FROM {keyspaces[case]}.w {as_of}"
            assert sees(case, role, world.rows(role, of_view), "w"), (role, of_view)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_copies_of_history(world, cases, case):
    keyspaces, (as_of_time, as_of_snapshot) = cases
    for role in ROLES:
        copy = f"copies.c{next(world.names)}"
        allowed = may(role, "SELECT", case.left) and (not case.hidden or may(role, "UNMASK", case.left))
        # One of a time takes longer to make.
        as_of = as_of_time if role == "of_keyspace_plain" or not allowed else as_of_snapshot
        statement = f"CREATE TABLE {copy} AS COPY OF {keyspaces[case]}.t {as_of}"
        assert world.does(role, statement) == allowed, (role, statement)
        if allowed:
            read = world.rows("of_all", f"SELECT {case.column} FROM {copy}")
            assert (VALUES[case.column] in str(read)) == (not case.hidden), "the copy has the masks"
    for role in (role for role in ROLES if ("CREATE", "all") in ROLES[role]):
        left = "nothing" if case.left == "nothing" else "keyspace"
        allowed = may(role, "SELECT", left) and (not case.hidden or may(role, "UNMASK", left))
        copy = f"copy{next(world.names)}"
        statement = f"CREATE KEYSPACE {copy} AS COPY OF {keyspaces[case]} {as_of_snapshot}"
        assert world.does(role, statement) == allowed, (role, statement)


def test_the_console_tells_no_more(world, cases):
    keyspaces, spellings = cases

    def call(path, body=None, **headers):
        """Returns the answer and its cookie. Without a body, the request is a GET."""
        url = f"http://{world.node.host}:{world.node.http_port}/console/api/{path}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(url, data, {name.replace("_", "-"): value for name, value in headers.items()})
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return answer.read().decode(), answer.headers["set-cookie"]
        except urllib.error.HTTPError as refused:
            return refused.read().decode(), None

    def token(**headers):
        return json.loads(call("session", **headers)[0])["token"]

    for role in ("creator", "of_table", "of_keyspace"):
        refusal, cookie = call("login", {"user": role, "password": role}, x_helenus_token=token())
        assert cookie, refusal
        cookie = cookie.split(";")[0]
        headers = {"cookie": cookie, "x_helenus_token": token(cookie=cookie)}
        for case, keyspace in keyspaces.items():
            answer = call("cql", {"statement": f"SELECT {case.column} FROM {keyspace}.t {spellings[1]}"}, **headers)[0]
            rows = None if f"User {role} has no SELECT permission" in answer else json.loads(answer)["rows"]
            assert sees(case, role, rows), (case.name, role, answer)


# Commands that restore a table: as of a time, or from a snapshot, a DROP or a backup.
COMMANDS = {
    "a time": lambda world, ks, time_ms: done(world.node, "restore", "--as-of", str(time_ms), "-kt", f"{ks}.t"),
    "a snapshot": lambda world, ks, time_ms: done(world.node, "restore", "-t", f"kept-{ks}", "-kt", f"{ks}.t"),
    "what DROP left": lambda world, ks, time_ms: done(world.node, "restore", "-kt", f"{ks}.t"),
    "a backup": lambda world, ks, time_ms: said("restore", *at(world.node), "--from", world.node.folder / f"backup-{ks}", "--keyspace", ks, "--roles"),
}
RESTORES = [
    Case("masked since", (), (MASK,), hidden=True),
    Case("masked and dropped", (), (MASK, DROP), "keyspace", hidden=True),
    Case("created again", (), (DROP, NAMESAKE), "keyspace"),
]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_put_back_tells_no_more(world, command):
    for case in RESTORES:
        if command == "what DROP left" and DROP not in case.now:
            continue
        keyspace = f"p{next(world.names)}"
        world.begin(keyspace, case.then)
        done(world.node, "snapshot", "-t", f"kept-{keyspace}", keyspace)
        if command == "a backup":
            said("backup", *at(world.node), "--to", world.node.folder / f"backup-{keyspace}")
        time_ms = now_ms()
        world.run(keyspace, case.now)
        # Permissions on the namesake, which go when another table takes its place.
        world.grant(keyspace)
        COMMANDS[command](world, keyspace, time_ms)
        # The backup has the roles' permissions on the table that it brings back.
        left = "table" if command == "a backup" else case.left
        for role in ROLES:
            row = f"SELECT v FROM {keyspace}.t WHERE k = 1"
            assert sees(case, role, world.rows(role, row), left=left), (case.name, role)
            where = f"SELECT k FROM {keyspace}.t WHERE v = 'secret' ALLOW FILTERING"
            assert world.does(role, where) == searches(case, role, left), (case.name, role)
        held = {(row.role, row.resource) for row in world.root.execute("LIST ALL PERMISSIONS") if row.resource == f"<table {keyspace}.t>"}
        assert ("creator", f"<table {keyspace}.t>") not in held, held
