"""CQL cases whose outcomes Apache Cassandra and Helenus must share."""
