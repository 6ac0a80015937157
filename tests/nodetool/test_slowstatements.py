"""`nodetool slowstatements`: the last slow requests of a node, and where their time went."""

import json

import pytest
from cassandra.concurrent import execute_concurrent_with_args

import helenus
from tool import nodetool

pytestmark = pytest.mark.process

ROWS = 4000


def slowly(steps):
    """Makes a function, so that statements with it take a millisecond and more on any machine."""
    return ("CREATE FUNCTION shop.slowly(v text) CALLED ON NULL INPUT RETURNS text LANGUAGE java AS "
            f"$$int n = 0; for (int i = 0; i < {steps}; i++) {{ n += i; }} return v;$$")


@pytest.fixture(scope="module")
def node(tmp_path_factory):
    """Yields a node for which every request over a millisecond is slow, and that keeps few of them."""
    args = ["--set", "slow_request_log_timeout=1ms", "--set", "slow_requests_kept=5"]
    node = helenus.Node(tmp_path_factory.mktemp("slow"), args=args).start()
    session = node.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute(slowly(500))
    session.execute("CREATE TABLE shop.carts (customer int, item int, v text, PRIMARY KEY (customer, item))")
    insert = session.prepare("INSERT INTO shop.carts (customer, item, v) VALUES (1, ?, ?)")
    # One for all tests: a driver that connects reads the schema, which is slow too.
    node.session = session
    execute_concurrent_with_args(session, insert, [(item, "x" * 100) for item in range(ROWS)])
    yield node
    node.close()


def kept(node, *args):
    ended = nodetool(node, "slowstatements", "-F", "json", *args)
    assert ended.returncode == 0, ended
    return json.loads(ended.stdout)["SlowStatements"]


def read_all(node):
    rows = node.session.execute("SELECT item, shop.slowly(v) FROM shop.carts WHERE customer = 1 AND v > 'a secret' ALLOW FILTERING")
    assert len(list(rows)) == ROWS


def test_slow_queries_are_rows(node):
    text = "SELECT item, shop.slowly(v) FROM shop.carts WHERE customer = ? AND v > ? ALLOW FILTERING"

    def found():
        read_all(node)
        rows = node.session.execute("SELECT * FROM system_views.slow_queries WHERE keyspace_name = 'shop' AND table_name = 'carts'")
        return [row for row in rows if row.query == text]

    row = helenus.wait_until(found, 30, "a row")[0]
    assert row.times_reported >= 1 and not row.cross_node
    assert 1 <= row.min_ms <= row.avg_ms <= row.max_ms


def test_slow_statement_has_stages_and_no_values(node):
    def found():
        read_all(node)
        return [one for one in kept(node) if "ALLOW FILTERING" in one["statement"]]

    slow = helenus.wait_until(found, 30, "a slow read")[0]
    assert slow["statement"] == "SELECT item, shop.slowly(v) FROM shop.carts WHERE customer = ? AND v > ? ALLOW FILTERING"
    assert (slow["keyspace"], slow["table"], slow["owner"]) == ("shop", "carts", None)
    assert slow["live_rows"] == ROWS and slow["tombstones"] == 0
    assert slow["client"].startswith("127.0.0.1:")
    assert slow["total_ms"] > 1 and "run" in slow["stages_ms"], slow
    # Each stage is rounded.
    assert abs(sum(slow["stages_ms"].values()) - slow["total_ms"]) < 1, slow


def test_the_list_is_bounded_and_shown_as_a_table(node):
    for _ in range(8):
        read_all(node)
    assert len(kept(node)) == 5
    assert [len(kept(node, "-k", str(count))) for count in (1, 3)] == [1, 3]
    times = [one["at"] for one in kept(node)]
    assert times == sorted(times, reverse=True)
    totals = [one["total_ms"] for one in kept(node, "--longest")]
    assert totals == sorted(totals, reverse=True)
    lines = nodetool(node, "slowstatements").stdout.splitlines()
    assert lines[0].split() == ["Time", "Milliseconds", "Stages", "Table", "Rows", "Tombstones", "Client", "Statement"]
    assert len(lines) == 6


def test_the_list_can_be_switched_off_while_the_node_runs(node, tmp_path):
    settings = tmp_path / "helenus.toml"
    settings.write_text('slow_request_log_timeout = "1ms"\n')
    other = helenus.Node(tmp_path / "other", args=["--config", str(settings)]).start()
    try:
        session = other.connect()
        session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        session.execute(slowly(500_000))
        slow = "SELECT shop.slowly(key) FROM system.local"

        def some():
            session.execute(slow)
            return kept(other)

        helenus.wait_until(some, 30, "a slow statement")
        settings.write_text('slow_request_log_timeout = "1ms"\nslow_requests_kept = 0\n')
        assert nodetool(other, "reloadconfig").returncode == 0
        assert nodetool(other, "slowstatements").stdout == "There are no slow statements\n"
        session.execute(slow)
        assert kept(other) == []
    finally:
        other.close()


def test_slow_statements_need_permission_for_commands(node):
    import http.client

    connection = http.client.HTTPConnection(node.host, node.http_port, timeout=10)
    connection.request("POST", "/node/slow_statements", "", {"host": f"evil.example:{node.http_port}"})
    assert connection.getresponse().status == 403
    connection.close()
