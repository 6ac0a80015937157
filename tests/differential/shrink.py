"""Makes a history that shows a difference smaller: drops steps while the difference stays.

A play takes a minute for one history or for a thousand, so each round plays many smaller ones at once, and goes on with the smallest
that still differs.
"""

import copy
import random

from compare import compare

ROUND_HISTORIES = 120


def positions(history):
    """Returns the phase and number of every step but the last."""
    return [(phase, step) for phase, steps in enumerate(history["phases"]) for step in range(len(steps))][:-1]


def without(history, dropped):
    smaller = copy.deepcopy(history)
    smaller["phases"] = [[step for number, step in enumerate(steps) if (phase, number) not in dropped]
                         for phase, steps in enumerate(history["phases"])]
    return smaller


def up_to(difference):
    """Returns the history up to the difference."""
    smaller = copy.deepcopy(difference.history)
    smaller["phases"][difference.phase] = smaller["phases"][difference.phase][:difference.step + 1]
    for phase in range(difference.phase + 1, len(smaller["phases"])):
        smaller["phases"][phase] = []
    return smaller


def smaller_ones(history, chance, count):
    """Returns histories with fewer steps: without each single step, without each phase, and without random steps."""
    steps = positions(history)
    reads = {step for step in steps if history["phases"][step[0]][step[1]][0] != "write"}
    drops = [reads, {step for step in reads if step[0] != steps[-1][0]}] if reads else []
    drops += [{step for step in steps if step[0] == phase} for phase in range(len(history["phases"]))]
    drops += [reads | {step} for step in steps] + [{step} for step in steps]
    while steps and len(drops) < count:
        share = chance.choice((0.3, 0.5, 0.7, 0.85))
        drops.append({step for step in steps if chance.random() < share})
    return [without(history, drop) for drop in drops[:count] if drop]


def shrink(arena, differences, shakes, seed, rounds):
    """Returns the differences, each with the smallest history that was found."""
    best = list(differences)
    for number in range(rounds):
        chance = random.Random(f"{seed}/shrink/{number}")
        batches = [[up_to(difference), *smaller_ones(up_to(difference), chance, ROUND_HISTORIES // len(best))] for difference in best]
        flat = [history for batch in batches for history in batch]
        found, _ = compare(flat, arena.play(flat, shakes, f"{seed}/shrink/{number}"))
        ends = [sum(map(len, batches[:end + 1])) for end in range(len(batches))]
        before = [difference.size for difference in best]
        for index, end in enumerate(ends):
            mine = [d for d in found if end - len(batches[index]) <= d.number < end and d.size < best[index].size]
            best[index] = min(mine, key=lambda d: d.size, default=best[index])
        arena.say(f"shrunk from {before} to {[difference.size for difference in best]} steps")
        if before == [difference.size for difference in best]:
            break
    return best
