"""Seeded histories, as plain data: what is written and read in each phase, between which the servers are shaken.

A history has a table's shape and two partitions of its own, and its statements come one after the other, so its answers are determined
whatever else the server does. It is a dictionary that JSON holds:

    {"shape": "rows", "life": "kept", "phases": [[["write", "INSERT …"], ["rows", "SELECT …"], …], …]}

A step's first word says what becomes of its answer: `rows` are compared in order, `set` without it, `write` too, which is empty but for
conditions, and `figures` are rows with times.
"""

import random
import re

from shapes import ANY, KEPT, PURGED, RISING, SERVER, SHAPES

PARTITIONS, INDEXED_VALUES = 2, 6
# TTLs that pass before the next phase, which begins this much later at least.
SHORT_TTLS_S = (1, 2)
PHASE_PAUSE_S = 4.5
# TTLs that don't, all different in a history: of two cells of one timestamp the one that lives longer wins, by the second.
LONG_TTL_STEP_S = 1_000_000


class Draft:
    """Chance, timestamps and TTLs of one history while it is made."""

    def __init__(self, chance, stamps):
        self.chance, self.stamps = chance, stamps
        self.range = chance.choice((3, 8, 50))
        self.last = 0
        self.ttl = 0
        self.has_short_ttl = False
        # Reads of other kinds would put right what is wrong in a cache.
        self.reads_one_way = chance.random() < 0.5

    def stamp(self):
        """Returns `TIMESTAMP n`. Empty if the server's timestamps are used."""
        if self.stamps == SERVER:
            return ""
        if self.stamps == RISING:
            self.last += self.chance.randint(1, 3)
            return f"TIMESTAMP {self.last}"
        return f"TIMESTAMP {self.chance.randint(1, self.range)}"

    def time_to_live(self):
        """Returns `TTL n`, but mostly an empty text."""
        if self.chance.random() > 0.2:
            return ""
        if self.chance.random() < 0.5:
            self.has_short_ttl = True
            return f"TTL {self.chance.choice(SHORT_TTLS_S)}"
        self.ttl += LONG_TTL_STEP_S
        return f"TTL {self.ttl + LONG_TTL_STEP_S // 2}"

    def fill(self, template, stamp=None):
        """Returns the template without its marks. `stamp` is the text of a timestamp, and by default a new one."""
        own = self.stamp() if stamp is None and "@t" in template else stamp
        using = [own] if own else []
        if "@ttl" in template:
            using += filter(None, [self.time_to_live()])
        text = re.sub(r" ?@(ttl|ts)", f" USING {' AND '.join(using)}" if using else "", template)
        values = {
            "p": lambda: self.chance.choice(("$p0", "$p0", "$p0", "$p1")), "c": lambda: str(self.chance.randrange(4)),
            "v": lambda: str(self.chance.randrange(6)), "k": lambda: str(self.chance.randrange(1, 4)),
            "i": lambda: f"$v{self.chance.randrange(4)}",
        }
        # A token range is of one partition.
        if "token(" in text:
            text = text.replace("#p", values["p"]())
        return re.sub("#([pcvki])", lambda mark: values[mark[1]](), text)


def weighted(chance, templates):
    return chance.choices(templates, [template[0] for template in templates])[0][1:]


def batch(draft, shape, templates):
    """Returns a batch over the history's partitions, with one timestamp or one for each statement."""
    kind = shape.batch
    if kind == "BATCH":
        kind = draft.chance.choice(("BATCH", "UNLOGGED BATCH"))
    # The order of list elements that are written in one batch is undefined.
    templates = [template for template in templates if " l " not in template[1] and "(p, c, l)" not in template[1]]
    own = draft.chance.random() < 0.5
    using = "" if own else draft.stamp()
    statements = [draft.fill(weighted(draft.chance, templates)[0], None if own else "") for _ in range(draft.chance.randint(2, 4))]
    return f"BEGIN {kind}{' USING ' + using if using else ''} {'; '.join(statements)}; APPLY BATCH"


def write(draft, shape, templates):
    if shape.batch and draft.chance.random() < 0.12:
        return ["write", batch(draft, shape, templates)]
    return ["write", draft.fill(weighted(draft.chance, templates)[0])]


def reads(draft, shape, is_last=False):
    found = []
    if not is_last and draft.chance.random() < 0.25:
        return found
    templates = [read for read in shape.reads if read[1] != "figures" or draft.stamps != SERVER]
    if draft.reads_one_way:
        templates = templates[:1]
    for _ in range(draft.chance.randint(1, 4)):
        kind, template = weighted(draft.chance, templates)
        found.append([kind, draft.fill(template)])
    if is_last or not draft.reads_one_way and draft.chance.random() < 0.3:
        found += [list(read) for read in shape.final if read[0] != "figures" or draft.stamps != SERVER]
    return found


def history(chance, phase_count, shape=None):
    """Returns one history, whose last phase only reads."""
    shape = shape or SHAPES[chance.choice(list(SHAPES))]
    stamps = chance.choice(shape.stamps)
    # Late writes stay deleted as long as tombstones are kept.
    life = KEPT if stamps == ANY else chance.choice((KEPT, PURGED))
    draft = Draft(chance, stamps)
    phases = []
    for number in range(phase_count):
        steps = reads(draft, shape, number + 1 == phase_count)
        if number + 1 < phase_count:
            templates = shape.late_writes if shape.late_writes and number * 2 >= phase_count else shape.writes
            draft.has_short_ttl = False
            steps += [write(draft, shape, templates) for _ in range(chance.choice((0, 1, 1, 2, 3, 5)))]
            if not draft.has_short_ttl:
                steps += reads(draft, shape)
        phases.append(steps)
    if any(SHORT_LIVED_INSERT.search(text) for steps in phases for _, text in steps):
        phases = [[step for step in steps if selects_all(*step)] for steps in phases]
    return {"shape": shape.name, "life": life, "stamps": stamps, "phases": phases}


# COMPAT.md: a row whose INSERT had a TTL that has passed is found if an older column makes it a row; Cassandra finds it only when that column is
# selected. So all columns are selected in histories with such an INSERT.
SHORT_LIVED_INSERT = re.compile(r"INSERT INTO [^;]* USING [^;]*TTL [12]\b")


def selects_all(kind, text):
    """Returns true for writes, and for reads of all columns."""
    return kind in ("write", "figures") or text.startswith("SELECT *")


def histories(seed, count, phase_count):
    """Returns `count` histories, which are the same for the same seed."""
    chance = random.Random(seed)
    return [history(chance, phase_count) for _ in range(count)]
