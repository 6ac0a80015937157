"""The audit log: its lines, what it leaves out, and its commands in nodetool."""

import re
import subprocess

import pytest
from cassandra import InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import Cluster, NoHostAvailable
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement

import helenus

pytestmark = pytest.mark.process

LINE = re.compile(r"user:(?P<user>[^|]*)\|host:[^|]*\|source:/127\.0\.0\.1\|port:\d+\|timestamp:\d{13}\|type:(?P<type>\w+)"
                  r"\|category:(?P<category>\w+)(\|batch:(?P<batch>[^|]*))?(\|ks:(?P<ks>[^|]*))?(\|scope:(?P<scope>[^|]*))?"
                  r"\|operation:(?P<operation>.*)")


class Log:
    """The entries of a node's audit log, each once."""

    def __init__(self, folder):
        self.folder = folder
        self.taken = 0

    def entries(self):
        lines = [line for file in sorted(self.folder.glob("audit.*.log")) for line in file.read_text().splitlines()]
        return [LINE.fullmatch(line) for line in lines]

    def next(self, count):
        """Returns the next entries, after waiting until there are `count`."""
        helenus.wait_until(lambda: len(self.entries()) >= self.taken + count, what=f"{count} more entries")
        new = self.entries()[self.taken:]
        self.taken += len(new)
        assert all(new) and len(new) == count, [entry and entry[0] for entry in new]
        return new


def shown(entry):
    return tuple(entry[name] for name in ("user", "type", "category", "ks", "scope", "operation"))


def nodetool(node, *words):
    address = f"{node.host}:{node.http_port}"
    return subprocess.run([helenus.binary(), "nodetool", "--http", address, *words], capture_output=True, text=True, timeout=20,
                          env=helenus.clean_environment())


def test_lines_and_commands(tmp_path):
    settings = {"authenticator": "PasswordAuthenticator", "authorizer": "CassandraAuthorizer",
                "audit_logging_options_enabled": "true", "audit_logging_options_audit_logs_dir": tmp_path / "audit",
                "audit_logging_options_excluded_keyspaces": "system,system_schema,system_virtual_schema,system_views,quiet",
                "audit_logging_options_excluded_users": "cassandra"}
    node = helenus.Node(tmp_path / "node", args=helenus.setting_args(settings)).start()
    log = Log(tmp_path / "audit")
    clusters = []

    def log_in(name, password):
        clusters.append(Cluster([node.host], port=node.port, auth_provider=PlainTextAuthProvider(name, password)))
        return clusters[-1].connect()

    def ran(session, statement, error=None):
        if error is None:
            return session.execute(statement)
        with pytest.raises(error):
            session.execute(statement)

    try:
        root = log_in("cassandra", "cassandra")
        root.execute("CREATE ROLE ann WITH PASSWORD = 'ann' AND LOGIN = true")
        for name in ("k", "quiet", "other"):
            root.execute(f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}")
            root.execute(f"CREATE TABLE {name}.t (p int PRIMARY KEY, v text)")
        for name in ("k", "quiet"):
            root.execute(f"GRANT ALL ON KEYSPACE {name} TO ann")
        with pytest.raises(NoHostAvailable):
            log_in("ann", "wrong")
        failure = log.next(1)[0]
        assert shown(failure)[:5] == ("ann", "LOGIN_ERROR", "AUTH", None, None)
        assert failure["operation"] == "LOGIN FAILURE; Provided username ann and/or password are incorrect"
        ann = log_in("ann", "ann")
        # The connection that reads the schema, and one for requests.
        assert {shown(entry) for entry in log.next(2)} == {("ann", "LOGIN_SUCCESS", "AUTH", None, None, "LOGIN SUCCESSFUL")}

        ran(ann, "INSERT INTO k.t (p, v)\nVALUES (1, 'user:root|type:SELECT')")
        ran(ann, "SELECT * FROM quiet.t")
        ran(ann, "SELECT * FROM other.t", Unauthorized)
        ran(ann, "SELEKT 1", SyntaxException)
        ran(ann, "SELECT missing FROM k.t", InvalidRequest)
        ran(ann, "ALTER ROLE ann WITH PASSWORD = 'secret'")
        inserted, unauthorized, unparsed, failed, altered = log.next(5)
        assert shown(inserted) == ("ann", "UPDATE", "DML", "k", "t", "INSERT INTO k.t (p, v) VALUES (1, 'user:root|type:SELECT')")
        assert shown(unauthorized)[:5] == ("ann", "UNAUTHORIZED_ATTEMPT", "AUTH", "other", "t")
        assert shown(unparsed)[1:3] == ("REQUEST_FAILURE", "ERROR") and unparsed["operation"].startswith("SELEKT 1; line 1:0")
        assert failed["type"] == "REQUEST_FAILURE" and failed["operation"].startswith("SELECT missing FROM k.t; Undefined column name missing")
        assert shown(altered)[1:] == ("ALTER_ROLE", "DCL", None, None, "ALTER ROLE ann WITH PASSWORD *******")

        ran(ann, "USE k")
        prepared = ann.prepare("DELETE FROM t WHERE p = ?")
        ann.execute(prepared, [1])
        batch = BatchStatement()
        batch.add(prepared, [2])
        batch.add("UPDATE k.t SET v = 'b' WHERE p = 2")
        ann.execute(batch)
        # The driver says USE again on the connections of its pool.
        used, again, made, deleted, whole, first, second = log.next(7)
        assert again["operation"] == 'USE "k"'
        assert shown(used) == ("ann", "USE_KEYSPACE", "OTHER", "k", None, "USE k")
        assert shown(made)[1:5] == ("PREPARE_STATEMENT", "PREPARE", "k", "t")
        assert shown(deleted)[1:] == ("DELETE", "DML", "k", "t", "DELETE FROM t WHERE p = ?")
        assert whole["operation"] == f"BatchId:[{whole['batch']}] - BATCH of [2] statements"
        assert [entry["type"] for entry in (first, second)] == ["DELETE", "UPDATE"]
        assert first["batch"] == second["batch"] == whole["batch"]

        assert nodetool(node, "disableauditlog").returncode == 0
        assert nodetool(node, "getauditlog").stdout.splitlines()[0].split() == ["enabled", "false"]
        ran(ann, "SELECT * FROM k.t")
        assert nodetool(node, "enableauditlog", "--included-categories", "ddl", "--excluded-users", "").returncode == 0
        options = dict(line.split(None, 1) for line in nodetool(node, "getauditlog").stdout.splitlines() if " " in line)
        assert options["enabled"] == "true" and options["included_categories"] == "DDL"
        assert options["excluded_keyspaces"].endswith("quiet") and "excluded_users" not in options
        refused = nodetool(node, "enableauditlog", "--included-categories", "DLL")
        assert refused.returncode != 0 and "DLL: not one of QUERY, DML" in refused.stderr
        ran(ann, "SELECT * FROM k.t")
        ran(root, "TRUNCATE k.t")
        assert shown(log.next(1)[0]) == ("cassandra", "TRUNCATE", "DDL", "k", "t", "TRUNCATE k.t")
    finally:
        for cluster in clusters:
            cluster.shutdown()
        node.close()
