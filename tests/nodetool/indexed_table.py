"""A table with an index and a view, in keyspace `s`, for tests of snapshots."""

KEYSPACE = "CREATE KEYSPACE {} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"


def create(session):
    """Makes table `s.t`; the statement that writes a row of it."""
    session.execute("CREATE TABLE s.t (k int PRIMARY KEY, i int, v text)")
    session.execute("CREATE INDEX t_i ON s.t (i)")
    session.execute("CREATE MATERIALIZED VIEW s.t_view AS SELECT * FROM s.t WHERE k IS NOT NULL AND i IS NOT NULL PRIMARY KEY (i, k)")
    return session.prepare("INSERT INTO s.t (k, i, v) VALUES (?, ?, ?)")


def counts(session, as_of=""):
    """Returns the numbers of rows of the table, by its index, and of its view."""
    count = lambda name, where="": session.execute(f"SELECT count(*) FROM s.{name} {as_of} {where}").one()[0]
    return count("t"), count("t", "WHERE i = 3"), count("t_view")
