"""Programs that use a cluster through a driver. They read commands line by line.

| line | answer |
|---|---|
| `nodes` | how many nodes the driver takes to be up |
| `route FROM COUNT` | `done`, after so many prepared INSERTs and then SELECTs, key by key |
| `load` | `done`: from now on eight workers write and read rows |
| `stop` | operations, failures, the longest of them in ms, and the first failure |

Every statement is prepared and marked as idempotent. Retries are the driver's own.
"""

import collections
import subprocess
import sys
import pathlib

HERE = pathlib.Path(__file__).resolve().parent

Load = collections.namedtuple("Load", "operations failures worst_ms first_failure")


class Program:
    """One running program."""

    def __init__(self, command, node, keyspace, log):
        self.log = open(log, "wb")
        self.process = subprocess.Popen([*command, node.host, str(node.port), keyspace], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=self.log, text=True, bufsize=1)
        assert self.answer() == "ready"

    def answer(self):
        line = self.process.stdout.readline()
        assert line, f"the program ended: {pathlib.Path(self.log.name).read_text(errors='replace')[-4000:]}"
        return line.rstrip("\n")

    def tell(self, line):
        self.process.stdin.write(f"{line}\n")
        self.process.stdin.flush()
        return self.answer()

    def nodes(self):
        return int(self.tell("nodes"))

    def route(self, first, count):
        assert self.tell(f"route {first} {count}") == "done"

    def load(self):
        assert self.tell("load") == "done"

    def stop(self):
        operations, failures, worst_ms, *why = self.tell("stop").split(" ", 3)
        return Load(int(operations), int(failures), int(worst_ms), " ".join(why))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.log.close()


def command(driver, toolchains):
    """Returns the command that runs a driver's program, without host, port and keyspace."""
    if driver == "python":
        return [sys.executable, str(HERE / "python_program.py")]
    built = getattr(toolchains, driver)()
    if driver == "java":
        return [*built[:-1], "helenus.tests.Cluster"]
    if driver == "node":
        return [built[0], str(pathlib.Path(built[1]).with_name("cluster.js"))]
    return [*built, "cluster"]
