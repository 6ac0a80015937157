"""Golden files: the outcomes that Cassandra gave, beside each case, and how outcomes are compared."""

import pathlib
import re

KNOWN = pathlib.Path(__file__).parent / "known_differences.txt"


def write(case, outcomes, version):
    out = [f"# {version}", ""]
    for o in outcomes:
        out += [f"> {o.head}"] + o.lines + [""]
    case.golden.write_text("\n".join(out))


def read(case):
    """Returns the recorded (head, lines) in order, or None if the case was never recorded."""
    if not case.golden.exists():
        return None
    blocks = []
    for line in case.golden.read_text().split("\n")[2:]:
        if line.startswith("> "):
            blocks.append((line[2:], []))
        elif line and blocks:
            blocks[-1][1].append(line)
    return blocks


def known_differences():
    """Returns {case name: {head prefix: reason}} from lines `case | statement prefix | reason`."""
    out = {}
    if KNOWN.exists():
        for line in KNOWN.read_text().split("\n"):
            parts = [p.strip() for p in line.split(" | ")]
            if not line.startswith("#") and len(parts) >= 3:
                out.setdefault(parts[0], {})[" | ".join(parts[1:-1])] = parts[-1]
    return out


class Difference:
    """One execution whose outcome was not the expected one. Kinds, from worst to mildest: `stale` (record
    again), `crash`, `rejected`, `accepted`, `code`, `rows`, `metadata`, `message`, `warning`."""

    def __init__(self, case, line, head, kind, expected, actual, reason=None):
        self.case, self.line, self.head, self.kind = case, line, head, kind
        self.expected, self.actual, self.reason = expected, actual, reason


def error_code(lines):
    if lines and lines[0].startswith("error "):
        return lines[0][len("error "):].split(":")[0].split(" ")[0]
    return None


def kind_of(expected, actual):
    if actual and actual[0].startswith("closed"):
        return "crash"
    want, got = error_code(expected), error_code(actual)
    if want is None and got is not None:
        return "rejected"
    if want is not None and got is None:
        return "accepted"
    if want is not None:
        return "code" if want != got else "message"
    plain = [[x for x in lines if not x.startswith("warning: ")] for lines in (expected, actual)]
    if plain[0] == plain[1]:
        return "warning"
    if plain[0][:1] != plain[1][:1] or plain[0][0].startswith("prepared"):
        return "metadata"
    return "rows"


SIGNATURES = re.compile(r"(?<=signatures: )(.*)(?=\))")
# An error's code with its fields, and its message.
ERROR = re.compile(r"error (\w+(?: \[.*?\])?): (.*)", re.S)
# Words of the language and of English: in a message they are no names.
COMMON = set("""a add aggregate all allow alter an and any are as asc at batch be begin by cannot clustering column columns
    contains counter create custom delete desc distinct does drop each entries exists filtering for from frozen full function group
    has if in index insert into is it json key keys keyspace like limit list map materialized no not null of on only or order
    partition per permission primary role select set static table that the this timestamp to token ttl tuple type unlogged update
    use user using value values vector view where with writetime""".split())


def in_order(message):
    """Returns the message with the overloads of a function sorted. Cassandra lists them in the order of a hash table."""
    def ordered(match):
        return ", system.".join(sorted(match.group().removeprefix("system.").split(", system.")))
    return SIGNATURES.sub(ordered, message)


def words(text):
    return {word.lower() for word in re.findall(r"\w+", text)}


def names_are_reported(code, statement, recorded, actual):
    """Returns true if our message has the names and values of the statement that the recorded message has. A syntax error's quotes of the
    statement do not count.
    """
    if code.startswith("SyntaxError"):
        recorded = recorded.split(" (")[0]
    return (words(recorded) & words(statement)) - COMMON <= words(actual)


def same_error(expected, outcome, exact):
    want, got = ERROR.match(expected[0]), ERROR.match(outcome.lines[0])
    if not got or want.group(1) != got.group(1) or expected[1:] != outcome.lines[1:]:
        return False
    if exact:
        return in_order(want.group(2)) == in_order(got.group(2))
    return names_are_reported(want.group(1), outcome.head, want.group(2), got.group(2))


def same(expected, outcome, exact=False):
    """Returns true if an outcome is as recorded. Only names count in an error's message, unless the case requires more: see README.md."""
    actual = outcome.lines
    if expected == actual:
        return True
    # An internal error is a bug of Cassandra's, so any refusal is right.
    if error_code(expected) in ("ServerError", "ReadFailure", "WriteFailure"):
        return error_code(actual) is not None
    if error_code(expected) is None:
        return outcome.unordered and sorted(expected) == sorted(actual)
    if outcome.code_only:
        return error_code(expected) == error_code(actual)
    return same_error(expected, outcome, exact)


def compare(case, expected, outcomes, known):
    """Compares outcomes with `expected`, the (head, lines) of `read`. Returns the differences. Known ones have a reason."""
    out = []
    reasons = known.get(case.name, {})
    exact = case.options.get("messages") == "exact"
    for i, o in enumerate(outcomes):
        if i >= len(expected) or expected[i][0] != o.head:
            # A prepared statement that was refused has no executions: look for the statement further on.
            match = next((e for e in expected[i:] if e[0] == o.head), None)
            if match is None:
                out.append(Difference(case, o.line, o.head, "stale", [], o.lines))
                continue
            lines = match[1]
        else:
            lines = expected[i][1]
        if not same(lines, o, exact):
            reason = next((r for prefix, r in reasons.items() if o.head.startswith(prefix)), None)
            out.append(Difference(case, o.line, o.head, kind_of(lines, o.lines), lines, o.lines, reason))
    return out
