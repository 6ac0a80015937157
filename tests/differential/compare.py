"""Finds and reports histories that servers answer differently."""

import dataclasses
import json

from player import filled
from shapes import SHAPES

JUDGE = "cassandra"


@dataclasses.dataclass
class Difference:
    """The first step of a history whose answers differ."""

    number: int
    history: dict
    phase: int
    step: int
    # By server.
    answers: dict
    wrong: list

    @property
    def size(self):
        return sum(map(len, self.history["phases"]))

    @property
    def title(self):
        return f"{self.history['shape']}, tombstones {self.history['life']}, timestamps {self.history['stamps']}"

    @property
    def kind(self):
        """Returns a key that is the same for differences with probably the same cause."""
        return self.history["shape"], self.history["stamps"], tuple(self.wrong)


def is_cut_short(of_history):
    """Returns true if a write's outcome is unknown. Later answers have no meaning then."""
    return any(answer[0] == "passing" for steps in of_history for answer in steps)


def compare(histories, answers):
    """Returns the differences, and the number of histories that could not be judged."""
    found, unjudged = [], 0
    for number, history in enumerate(histories):
        of_servers = {name: given[number] for name, given in answers.items()}
        if any(map(is_cut_short, of_servers.values())):
            unjudged += 1
            continue
        if not SHAPES[history["shape"]].is_judged(history["life"]):
            of_servers.pop(JUDGE, None)
        difference = first_difference(number, history, of_servers)
        if difference:
            found.append(difference)
    return found, unjudged


def first_difference(number, history, of_servers):
    right = of_servers.get(JUDGE) or next(iter(of_servers.values()))
    for phase, steps in enumerate(history["phases"]):
        for step in range(len(steps)):
            wrong = [name for name, given in of_servers.items() if given[phase][step] != right[phase][step]]
            if wrong:
                given = {name: given[phase][step] for name, given in of_servers.items()}
                return Difference(number, history, phase, step, given, wrong)
    return None


def shown(answer):
    return "; ".join(json.dumps(row) for row in answer[1:]) or "nothing" if answer[0] == "rows" else " ".join(answer)


def told(difference, shakes):
    """Returns a description of the difference: the statements up to it, the shakes between them, and the answers."""
    history = difference.history
    lines = [f"{difference.title}:"]
    for phase, steps in enumerate(history["phases"][:difference.phase + 1]):
        if phase:
            lines.append(f"    -- {shakes[phase - 1]}")
        last = difference.step if phase == difference.phase else len(steps)
        lines += [f"    {filled(statement, history, 0)}" for _, statement in steps[:last + 1]]
    lines += [f"  {name} answers {shown(answer)}" + ("  <--" if name in difference.wrong else "")
              for name, answer in difference.answers.items()]
    return "\n".join(lines)
