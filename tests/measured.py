"""Times and memory compared with a control of the same run: ratios hold on most machines, where constants do not.

A very busy machine breaks ratios too. `./test` without parts, and the turns of CI, pass `--unjudged`: both actions run, with all that they
assert themselves, and the ratio is only printed. `./test all`, and parts named by hand, judge it.
"""

import pathlib
import time

TRIES = 3
# False if ratios are only printed. Set by conftest.py.
is_judged = True


def compare(control, measured, factor, what):
    """Fails unless `measured()` is less than `factor` times `control()`, in at least one of three tries."""
    seen = []
    for _ in range(TRIES):
        seen.append((control(), measured()))
        if seen[-1][1] < factor * seen[-1][0]:
            return
        if not is_judged:
            print(f"{what}: {seen[-1][1]:.3g}, control {seen[-1][0]:.3g}, factor {factor} (not judged)")
            return
    words = "; ".join(f"{of:.3g}, control {than:.3g}" for than, of in seen)
    raise AssertionError(f"{what}: expected less than {factor} times the control, got {words}")


def seconds(act):
    """Returns the seconds that an action takes."""
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


class Memory:
    """Memory of a node's process beyond what it had at first. To be made while the node is young: allocators keep what was once used."""

    def __init__(self, node):
        self.node = node
        self.folder = pathlib.Path(f"/proc/{node.process.pid}")
        self.at_first = self.bytes("VmRSS")

    def bytes(self, name):
        lines = (self.folder / "status").read_text().splitlines()
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))

    def most(self, act):
        """Runs an action. Returns the maximum of the bytes that it added."""
        (self.folder / "clear_refs").write_text("5")
        act()
        assert self.node.alive(), self.node.log()
        return max(0, self.bytes("VmHWM") - self.at_first)
