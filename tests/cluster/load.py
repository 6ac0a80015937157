"""Clients at work on the nodes of a cluster, whose history is recorded."""

import subprocess


class Load:
    """Clients at work, until `finish`."""

    def __init__(self, checker, fleet, history, rate, seed, log):
        command = [*checker, "load", "--nodes", ",".join(fleet.addresses), "--history", str(history),
                   "--rate", str(rate), "--seed", str(seed)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout.readline() == "ok\n", "the clients have not begun"

    def finish(self, timeout_s):
        """Ends the load and has everything read back."""
        self.process.stdin.write("stop\n")
        self.process.stdin.flush()
        assert self.process.wait(timeout_s) == 0, "not everything could be read back"

    def close(self):
        self.process.kill()
        self.process.wait()
