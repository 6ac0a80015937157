"""Three nodes of one bucket, each with a proxy of its own before the store and before its port for the other nodes."""

import json
import subprocess

import helenus

NODES = 3
# Fewer than three nodes are to have, so that tablets are split when nodes come and merged when they go.
TABLETS = 4
SETTLE_TIMEOUT_S = 90
# Longer than any fault lasts but the one that waits for merges.
MERGE_AFTER_S = 8


class Proxies:
    """The proxies of all nodes, in one process: `store1` before the store of node 1, `peer1` before its port for the others."""

    def __init__(self, checker, specs):
        command = [*checker, "proxy", *(f"{name}={listen},{upstream},{kind}" for name, listen, upstream, kind in specs)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._answered()

    def _answered(self):
        line = self.process.stdout.readline()
        assert line == "ok\n", f"the proxies said {line!r}"

    def set(self, name, mode):
        self.process.stdin.write(f"{name} {mode}\n")
        self.process.stdin.flush()
        self._answered()

    def close(self):
        self.process.kill()
        self.process.wait()


class Fleet:
    """The nodes, `store` being the URL of an empty bucket of `minio`."""

    def __init__(self, checker, minio, store, folder, settings=()):
        address = lambda: f"127.0.0.1:{helenus.free_port()}"
        stores, peers = [address() for _ in range(NODES)], [address() for _ in range(NODES)]
        self.minio, self.store, self.folder = minio, store, folder
        self.nodes = []
        for number, (own_store, own_peer) in enumerate(zip(stores, peers), 1):
            chosen = [f"rpc_advertise={own_peer}", f"tablet_count={TABLETS}", f"merge_after={MERGE_AFTER_S}s", *settings]
            args = ["--name", f"node{number}", "--rack", f"rack{number}"]
            for setting in chosen:
                args += ["--set", setting]
            node = helenus.Node(folder / f"node{number}", store=store, env=minio.environment(f"http://{own_store}"), args=args)
            # Drivers distinguish nodes by their IP addresses.
            node.host = f"127.0.0.{number}"
            node.name, node.number = f"node{number}", number
            self.nodes.append(node)
        specs = [(f"store{n}", at, f"{minio.host}:{minio.port}", "http") for n, at in enumerate(stores, 1)]
        specs += [(f"peer{node.number}", at, f"{node.host}:{node.rpc_port}", "tcp") for node, at in zip(self.nodes, peers)]
        self.proxies = Proxies(checker, specs)
        # All numbers of tablets so far.
        self.tablet_counts = []

    def start(self):
        for node in self.nodes:
            node.start()
        self.settle()
        return self

    @property
    def addresses(self):
        return [f"{node.host}:{node.port}" for node in self.nodes]

    def views(self):
        """Returns the view of the cluster of each node that answers."""
        found = []
        for node in self.nodes:
            try:
                status, text = node.http("/cluster")
            except OSError:
                continue
            if status == 200:
                found.append(json.loads(text))
        return found

    def note_tablets(self):
        """Records the number of tablets. Returns the nodes' views."""
        views = self.views()
        if views:
            count = len(views[0]["tablets"])
            if self.tablet_counts[-1:] != [count]:
                self.tablet_counts.append(count)
        return views

    def is_settled(self):
        """Returns true if all nodes agree that all nodes are alive, and that every tablet is at rest with an owner."""
        views = self.note_tablets()
        if len(views) != NODES or len({view["version"] for view in views}) != 1:
            return False
        nodes, tablets = views[0]["nodes"], views[0]["tablets"]
        well = len(nodes) == NODES and all(n["alive"] and n["state"] == "normal" and n["tablets"] > 0 for n in nodes)
        at_rest = all(t["owner"] is not None and t["state"] == "stable" for t in tablets)
        return well and at_rest and all(view["state"] == "serving" for view in views)

    def settle(self):
        """Waits until all nodes and tablets are at rest."""
        for node in self.nodes:
            assert node.alive(), f"{node.name} has ended:\n{node.log(60)}"
        helenus.wait_until(self.is_settled, SETTLE_TIMEOUT_S, "all nodes and tablets at rest", 0.1)

    def close(self):
        for node in self.nodes:
            node.close()
        self.proxies.close()
