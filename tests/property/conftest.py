"""A node of the module's own, so that it can be restarted; with --target the running server."""

import itertools

import pytest
from hypothesis import HealthCheck, settings

import helenus

settings.register_profile("tests", deadline=None, database=None, suppress_health_check=list(HealthCheck),
                          print_blob=True)
settings.load_profile("tests")

_names = itertools.count()


class Server:
    """A server with a session in a keyspace of its own, which can be restarted if it is ours."""

    def __init__(self, target, keyspace):
        self.target, self.keyspace = target, keyspace
        bare = target.connect()
        bare.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
        bare.execute(f"CREATE KEYSPACE {keyspace} WITH replication = "
                     "{'class': 'SimpleStrategy', 'replication_factor': 1}")
        self.connect()

    def connect(self):
        self.target.close_clients()
        self.session = self.target.connect(self.keyspace, schema_metadata_enabled=False)

    def restart(self, clean):
        """Restarts an own node; returns whether it did."""
        if not self.target.owned:
            return False
        self.target.close_clients()
        self.target.restart(clean=clean)
        self.connect()
        return True

    def name(self, prefix="t"):
        return f"{prefix}{next(_names)}"


@pytest.fixture(scope="module")
def server(request, tmp_path_factory):
    address = request.config.getoption("--target")
    if address:
        host, _, port = address.rpartition(":")
        target = helenus.Target(host, int(port))
    else:
        target = helenus.Node(tmp_path_factory.mktemp("node")).start()
    server = Server(target, "property")
    yield server
    if not target.owned:
        server.session.execute("DROP KEYSPACE property")
    target.close()


@pytest.fixture
def examples(request):
    """Returns the number of random rows for each type."""
    return request.config.getoption("--examples")
