"""A node dies and another one takes its tablets over: what requests wait for meanwhile, and what keeps the lease of the survivor."""

import re

import pytest

import helenus
from faulty_proxy import FaultyProxy

pytestmark = pytest.mark.process

KEYSPACE = "CREATE KEYSPACE o WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"


def peers(session):
    return len(session.execute("SELECT host_id FROM system.peers_v2").all())


def milliseconds(line):
    """Returns the time of each stage in a line of the log of slow requests."""
    return {stage: float(ms) for stage, ms in re.findall(r"(\w+) ([0-9.]+)", re.search(r"stages_ms=(.*?) client=", line)[1])}


def test_a_wait_for_an_owner_is_told_as_such(bucket, nodes):
    survivor, other = (nodes(bucket, args=["--set", "slow_request_log_timeout=200ms"]).start() for _ in range(2))
    session = survivor.connect()
    session.execute(KEYSPACE)
    session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
    helenus.wait_until(lambda: peers(session) == 1, what="both nodes have tablets")
    for k in range(50):
        session.execute("INSERT INTO o.t (k, v) VALUES (%s, 1)", (k,))
    other.kill()
    other.close_clients()
    # Reads of the dead node's rows wait until the survivor owns them.
    reads = [session.execute_async("SELECT v FROM o.t WHERE k = %s", (k,), timeout=60) for k in range(50)]
    assert all(read.result().one().v == 1 for read in reads)
    waited = [line for line in survivor.log(10_000).splitlines() if "slow request" in line and "SELECT v FROM o.t" in line]
    assert waited, "no read has waited"
    for line in waited:
        stages = milliseconds(line)
        assert stages.get("owner", 0) > stages.get("run", 0), line
        assert "live_rows=1 " in line, line


def test_leases_use_connections_of_their_own(bucket, nodes, minio):
    proxy = FaultyProxy(minio.host, minio.port)
    try:
        node = nodes(bucket, minio.environment(proxy.endpoint)).start()
        session = node.connect()
        session.execute(KEYSPACE)
        session.execute("CREATE TABLE o.t (k int PRIMARY KEY, v int)")
        is_lease = lambda request: "/meta/cluster.node." in request[1]
        renewals = lambda: sum(request[0] == "PUT" and is_lease(request) for requests in proxy.connections for request in requests)
        before = renewals()
        k = 0

        def renewed():
            nonlocal k
            k += 1
            session.execute("INSERT INTO o.t (k, v) VALUES (%s, 1)", (k,))
            return renewals() >= before + 3

        helenus.wait_until(renewed, what="renewals beside writes")
        for requests in [list(requests) for requests in proxy.connections]:
            if any(request[0] == "PUT" and is_lease(request) for request in requests):
                assert all(map(is_lease, requests)), requests[:20]
    finally:
        proxy.close()
