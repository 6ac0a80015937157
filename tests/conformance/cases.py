"""Case files: CQL statements with directives in comments. README.md has the format."""

import pathlib
import re

CASES = pathlib.Path(__file__).parent / "cases"

LIST_DIRECTIVES = ("params", "named", "values", "named_values")
DIRECTIVES = LIST_DIRECTIVES + (
    "page_size", "consistency", "serial", "timestamp", "now", "mask", "approx", "unordered", "each", "wait", "times",
    "prepare", "retry", "skip_metadata", "batch", "code_only", "across", "keyspace", "user", "wire",
)


def expand(text):
    """Replaces `%rep(x,n)` by n times x."""
    return re.sub(r"%rep\(([^,]*),(\d+)\)", lambda m: m.group(1) * int(m.group(2)), text)


class Step:
    """One statement and how to run it; what is sent has `%rep` expanded."""

    def __init__(self, text, line, directives):
        self.text, self.line, self.directives = text, line, directives
        self.sent = expand(text)

    def get(self, name, default=None):
        return self.directives.get(name, default)


class Case:
    """One file: runs in a keyspace of its own."""

    def __init__(self, path):
        self.path = path
        self.name = str(path.relative_to(CASES).with_suffix(""))
        self.keyspace = "c_" + re.sub(r"\W", "_", self.name)
        self.options = {}
        self.steps = []
        self.parse(path.read_text())

    @property
    def login(self):
        """Returns the name and password to log in with. `None` if the case needs no server with authentication."""
        return tuple(self.options["login"].split("/")) if "login" in self.options else None

    @property
    def is_for_the_wire(self):
        """Returns true if the case runs over the wire even in a sample: it is marked, or concerns more than statements, such as the log-in."""
        options = ("wire", "login", "protocol")
        return any(o in self.options for o in options) or any("wire" in s.directives for s in self.steps)

    @property
    def golden(self):
        return self.path.with_suffix(".out")

    def parse(self, source):
        directives, statement, start = {}, [], 0
        for number, line in enumerate(source.split("\n"), 1):
            if not statement:
                if line.startswith("--"):
                    self.directive(line, directives, number)
                    continue
                if not line.strip():
                    continue
                start = number
            statement.append(line)
            if self.complete(statement):
                text = "\n".join(statement).strip()
                self.add(text[:-1].rstrip() if text.endswith(";") else text, start, directives)
                directives, statement = {}, []
        if statement:
            raise ValueError(f"{self.path}:{start}: statement without an end")

    @staticmethod
    def complete(lines):
        last = lines[-1].rstrip()
        if lines[0].lstrip().upper().startswith("BEGIN"):
            return last.upper().endswith(("APPLY BATCH;", "TRANSACTION;", "--END;"))
        return last.endswith(";")

    def directive(self, line, directives, number):
        m = re.match(r"--\s*(\w+)(?::\s*(.*?))?\s*$", line)
        if line.startswith("-- case "):
            key, _, value = line[len("-- case "):].partition(":")
            self.options[key.strip()] = value.strip()
        elif m and m.group(1) in DIRECTIVES and (m.group(2) is not None or line.rstrip() == f"-- {m.group(1)}"):
            name, value = m.group(1), m.group(2) or ""
            if name in LIST_DIRECTIVES:
                directives.setdefault(name, []).append(value)
            elif name in ("each", "across"):
                directives.setdefault(name, []).extend(v.strip() for v in value.split(" | "))
            else:
                directives[name] = value

    def add(self, text, line, directives):
        if "across" in directives:
            rest = {k: v for k, v in directives.items() if k != "across"}
            for ending in directives["across"]:
                self.add(text.replace("$x", "" if ending == "none" else ending).rstrip(), line, rest)
            return
        if "each" not in directives:
            self.steps.append(Step(text.replace("%ks", self.keyspace), line, directives))
            return
        rest = {k: v for k, v in directives.items() if k != "each"}
        for row in directives["each"]:
            fields = [f.strip() for f in row.split(" ; ")]
            expanded = text
            for i, field in enumerate(fields, 1):
                expanded = expanded.replace(f"${i}", field)
            expanded = expanded.replace("$n", str(len(self.steps)))
            self.steps.append(Step(expanded.replace("%ks", self.keyspace), line, rest))


def load(filters=(), secured=False):
    """Returns all cases whose name contains one of `filters`, sorted. `secured` chooses those for a server with authentication, or the others."""
    paths = sorted(CASES.rglob("*.cql"))
    cases = [c for c in map(Case, paths) if (c.login is not None) == secured]
    return [c for c in cases if not filters or any(f in c.name for f in filters)]
