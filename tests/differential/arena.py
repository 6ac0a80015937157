"""The servers side by side: plays histories on all of them at once, shaking them between the phases."""

import concurrent.futures
import random
import shutil
import time

from histories import PHASE_PAUSE_S
from player import play
from servers import Cassandra, Folder, ThreeNodes

# Tombstones are kept for ten minutes where nothing else is said; within them writes may be late.
PLAY_S_MAX = 540
SHAKES = ("flush", "compact", "rest", "kill", "drain", "split")
# In any play: tombstones get old, are written to files, and those are joined; nodes end with and without notice.
SHORT_PLAY = ("flush", "compact", "kill", "compact", "drain")


def choose_shakes(seed):
    """Returns the shakes of a play."""
    chance = random.Random(f"{seed}/shakes")
    chosen = ["flush", "compact", "rest", *chance.choices(SHAKES, k=2)]
    chance.shuffle(chosen)
    return chosen


class Arena:
    """A Cassandra, a folder with a row cache and one without, and three nodes on a bucket."""

    def __init__(self, folder, say):
        self.say, self.servers, self.slots = say, [], 0
        began = time.monotonic()
        # An earlier run may have left files.
        shutil.rmtree(folder, ignore_errors=True)
        cassandra = Cassandra(folder / "cassandra")
        self.servers.append(cassandra)
        try:
            self.servers.append(Folder("folder", folder / "folder"))
            self.servers.append(Folder("folder-without-row-cache", folder / "uncached", "row_cache_bytes=0"))
            self.servers.append(ThreeNodes(folder / "nodes"))
            cassandra.wait_ready()
            self.on_all(lambda server: server.make_tables())
        except BaseException:
            self.close()
            raise
        say(f"{', '.join(server.name for server in self.servers)}: ready after {time.monotonic() - began:.0f} s")

    def on_all(self, act):
        """Does something with all servers at once; what came of it, by their names."""
        with concurrent.futures.ThreadPoolExecutor(len(self.servers)) as pool:
            begun = {server.name: pool.submit(act, server) for server in self.servers}
        return {name: done.result() for name, done in begun.items()}

    def play(self, histories, shakes, seed):
        """Plays the histories on all servers. Returns the answers of each server, by history, phase and step."""
        first_slot, began = self.slots, time.monotonic()
        self.slots += len(histories)
        answers = {server.name: [[] for _ in histories] for server in self.servers}
        for phase in range(len(shakes) + 1):
            self.play_phase(histories, phase, first_slot, answers)
            if phase < len(shakes):
                self.shake(shakes[phase], f"{seed}/{phase}")
        took = time.monotonic() - began
        assert took < PLAY_S_MAX, f"a play took {took:.0f} s: with fewer histories (--histories) tombstones are not too old for late writes"
        return answers

    def play_phase(self, histories, phase, first_slot, answers):
        began = time.monotonic()
        played = self.on_all(lambda server: play(server.open(), histories, phase, first_slot))
        for name, of_histories in played.items():
            for kept, steps in zip(answers[name], of_histories):
                kept.append(steps)
        count = sum(len(history["phases"][phase]) for history in histories)
        self.say(f"  phase {phase}: {count} statements on each, {time.monotonic() - began:.1f} s")

    def shake(self, name, seed):
        began = time.monotonic()
        self.on_all(lambda server: server.shake(name, random.Random(f"{seed}/{server.name}")))
        took = time.monotonic() - began
        time.sleep(max(0.0, PHASE_PAUSE_S - took))
        self.say(f"  {name}: {took:.1f} s")

    def close(self):
        for server in self.servers:
            server.close()
