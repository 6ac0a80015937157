"""Functions and aggregates of users: what the driver knows of them, and those that don't end."""

import os
import threading

import pytest
from cassandra import FunctionFailure


def test_metadata_of_functions_and_aggregates(ks):
    cluster = ks.cluster
    ks.execute("CREATE TYPE point (x int, y int)")
    ks.execute(
        "CREATE FUNCTION appended(state list<int>, value int) CALLED ON NULL INPUT RETURNS list<int> "
        "LANGUAGE java AS 'state.add(value); return state;'"
    )
    ks.execute(
        "CREATE FUNCTION point_of(x int) RETURNS NULL ON NULL INPUT RETURNS point "
        "LANGUAGE java AS $$UDTValue p = udfContext.newReturnUDTValue(); p.setInt(\"x\", x); return p;$$"
    )
    ks.execute("CREATE AGGREGATE all_of(int) SFUNC appended STYPE list<int> INITCOND [0]")
    keyspace = cluster.metadata.keyspaces[ks.keyspace]
    assert sorted(keyspace.functions) == ["appended(list<int>,int)", "point_of(int)"]
    function = keyspace.functions["appended(list<int>,int)"]
    assert (function.argument_names, function.return_type) == (["state", "value"], "list<int>")
    assert function.called_on_null_input and function.language == "java"
    aggregate = keyspace.aggregates["all_of(int)"]
    assert (aggregate.state_func, aggregate.initial_condition) == ("appended", "[0]")
    ks.execute("CREATE TABLE t (k int PRIMARY KEY)")
    for key in (1, 2):
        ks.execute("INSERT INTO t (k) VALUES (%s)", (key,))
    row = ks.execute("SELECT all_of(k) AS every, point_of(7) AS point FROM t").one()
    assert sorted(row.every) == [0, 1, 2]
    assert (row.point.x, row.point.y) == (7, None)
    ks.execute("DROP AGGREGATE all_of")
    ks.execute("DROP FUNCTION appended")
    keyspace = cluster.metadata.keyspaces[ks.keyspace]
    assert (sorted(keyspace.functions), sorted(keyspace.aggregates)) == (["point_of(int)"], [])


def test_functions_that_do_not_end_hold_nobody_else_up(target, ks):
    ks.execute(
        "CREATE FUNCTION forever(x int) RETURNS NULL ON NULL INPUT RETURNS int "
        "LANGUAGE java AS 'while (true) { x++; }'"
    )
    ks.execute("CREATE TABLE t (k int PRIMARY KEY, v int)")
    ks.execute("INSERT INTO t (k, v) VALUES (1, 1)")
    # As many as would keep every thread of the node busy.
    others = [target.connect(ks.keyspace) for _ in range(2 * (os.cpu_count() or 1))]
    ended = threading.Event()
    endless = [other.execute_async("SELECT forever(v) FROM t WHERE k = 1") for other in others]
    for request in endless:
        request.add_callbacks(lambda _: ended.set(), lambda _: ended.set())
    served = 0
    while not ended.is_set():
        assert ks.execute("SELECT v FROM t WHERE k = 1").one().v == 1
        served += 1
    for request in endless:
        with pytest.raises(FunctionFailure, match="ran longer than 1500ms"):
            request.result()
    # Up to two of these reads may have run without the functions: the first before them, and the last after one of them.
    assert served > 5, f"{served} reads were served while functions ran for 1.5 s"
    for other in others:
        other.cluster.shutdown()
