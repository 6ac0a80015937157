"""Several nodes of Cassandra, which form a cluster on addresses of one machine."""

import helenus
from cassandras import CassandraNode

NORMAL, DOWN = "UN", "DN"
JOIN_TIMEOUT_S = 300


class CassandraCluster:
    """Nodes at consecutive addresses. They have one port for clients."""

    def __init__(self, release, folder, hosts):
        port = helenus.free_port_on(*hosts)
        self.nodes = [CassandraNode(release, folder / f"cassandra{number}", host, port, seed=hosts[0]) for number, host in enumerate(hosts, 1)]

    def start(self):
        """Starts all nodes, one after the other. Returns the cluster."""
        for number, node in enumerate(self.nodes, 1):
            node.start()
            self.wait_joined(number)
        return self

    def wait_joined(self, count=None):
        """Returns when each node that runs regards all of them as up."""
        for node in self.nodes:
            if node.process is not None:
                helenus.wait_until(lambda: states(node).count(NORMAL) == (count or len(self.nodes)), JOIN_TIMEOUT_S,
                                   f"{node.host} regards all nodes as up", 0.5)

    def wait_down(self, stopped):
        """Returns when the first node regards a node as down. Then it writes hints at once, if it writes any."""
        helenus.wait_until(lambda: states(self.nodes[0]).count(DOWN) == 1, JOIN_TIMEOUT_S, f"{stopped.host} is down", 0.5)

    def connect(self, **options):
        """Returns a session with all nodes. The first node must be up."""
        return self.nodes[0].connect(**options)

    def nodetool(self, *words):
        """Runs a command on each node."""
        for node in self.nodes:
            node.nodetool(*words)

    def close(self):
        for node in self.nodes:
            node.close()


def states(node):
    """Returns the states of all nodes as a node regards them: UN is up, and a full member."""
    return [line[:2] for line in node.nodetool("status").splitlines() if line[:2] in (NORMAL, DOWN, "UJ", "UL", "UM")]
