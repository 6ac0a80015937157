"""Nodes on one bucket, at addresses of their own and one port, as Cassandra's nodes are."""

import helenus

HOSTS = ("127.0.0.1", "127.0.0.2", "127.0.0.3")


class Cluster:
    """The nodes, and what they count together."""

    def __init__(self, minio, folder, url, hosts=HOSTS, args=(), timeout_s=30):
        port = helenus.free_port_on(*hosts) if len(set(hosts)) > 1 else None
        self.nodes = [helenus.Node(folder / f"node{n}", store=url, env=minio.environment(), host=host, port=port,
                                   args=[*args, "--name", f"node{n}"])
                      for n, host in enumerate(hosts, 1)]
        for node in self.nodes:
            node.start()
        self.wait_settled(timeout_s)

    def alive(self):
        return [node for node in self.nodes if node.alive()]

    def wait_settled(self, timeout_s=30):
        """Returns when every node that runs owns tablets, all know it, and none is moving."""
        count = len(self.alive())

        def settled():
            figures = [node.metrics() for node in self.alive()]
            return all(f["helenus_cluster_nodes_alive"] == f["helenus_cluster_nodes"] == count
                       and f["helenus_cluster_tablets_owned"] > 0 and f["helenus_cluster_tablets_moving"] == 0
                       and f["helenus_cluster_tablets_without_owner"] == 0 for f in figures)

        helenus.wait_until(settled, timeout_s, f"{count} nodes with their share")

    def passed_on(self):
        """Returns the number of statements that arrived at a node that did not own their rows."""
        return self.asked("statement")

    def asked(self, kind):
        """Returns the number of answered requests of a kind between nodes."""
        name = f'helenus_cluster_remote_total{{kind="{kind}",outcome="done"}}'
        return sum(node.metrics()[name] for node in self.alive())

    def close(self):
        for node in self.nodes:
            node.close()
