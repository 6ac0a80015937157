"""Reads the figures in `bench/results`: a file for each experiment, and `page.json` with their order and common facts.

An experiment has `title`, `date`, `command`, `about`, `columns`, and either

- `comparison`: by operation, the figures of Helenus and of Cassandra in the same run, in the order of `columns`, or
- `rows`: the cells of a table, the row's name first.

`targets` are its rows of the scoreboard. A target has a bound (`at_most` or `at_least`, with `unit`). It names the `figures` of its own
table by row and column, or gives `measured` numbers that are not in the table. In a comparison a figure is Helenus' divided by Cassandra's.
A target without numbers has `wanted`, `said` and `met`.
"""

import dataclasses
import json

SERVERS = ("Helenus", "Cassandra")


class Malformed(Exception):
    """A file that does not have the form described above."""


@dataclasses.dataclass(frozen=True)
class Target:
    """A row of the scoreboard."""

    name: str
    wanted: str
    latest: str
    is_met: bool


class Experiment:
    """The figures of one file."""

    def __init__(self, name, content):
        self.name = name
        self.title = content.pop("title")
        self.date = content.pop("date")
        self.command = content.pop("command")
        self.about = content.pop("about", "")
        self.notes = content.pop("notes", [])
        self.columns = content.pop("columns")
        self.comparison = content.pop("comparison", {})
        self.rows = content.pop("rows", [])
        targets = content.pop("targets", [])
        if content:
            raise Malformed(f"{name}: unknown: {', '.join(content)}")
        self._check_lengths()
        self.targets = [self._target(target) for target in targets]

    def _check_lengths(self):
        if bool(self.comparison) == bool(self.rows):
            raise Malformed(f"{self.name}: it needs either a comparison or rows")
        sides = [side for sides in self.comparison.values() for side in (sides[server] for server in SERVERS)]
        for cells in self.rows + sides:
            if len(cells) != len(self.columns):
                raise Malformed(f"{self.name}: {cells} does not fit the columns")

    def figure(self, row, column):
        """Returns the figure in a row and column. In a comparison it is Helenus' divided by Cassandra's."""
        at = self.columns.index(column)
        if self.comparison:
            helenus, cassandra = (self.comparison[row][server][at] for server in SERVERS)
            return helenus / cassandra
        return next(cells[at] for cells in self.rows if cells[0] == row)

    def _target(self, target):
        if "said" in target:
            return Target(target["target"], target["wanted"], target["said"], target["met"])
        figures = target.get("measured") or [self.figure(*place) for place in target["figures"]]
        unit = target.get("unit", "×" if self.comparison else "")
        is_ratio = "measured" not in target and bool(self.comparison)
        shown = [ratio(figure) if is_ratio else number(figure) for figure in (min(figures), max(figures))]
        latest = shown[0] if shown[0] == shown[1] else f"{shown[0]} to {shown[1]}"
        if "at_most" in target:
            wanted, is_met = f"at most {number(target['at_most'])}", max(figures) <= target["at_most"]
        else:
            wanted, is_met = f"at least {number(target['at_least'])}", min(figures) >= target["at_least"]
        return Target(target["target"], with_unit(wanted, unit), with_unit(latest, unit), is_met)


@dataclasses.dataclass(frozen=True)
class Page:
    """All experiments in the page's order."""

    machine: list
    machine_short: str
    not_measured: str
    chart: dict
    experiments: list

    def experiment(self, name):
        return next(experiment for experiment in self.experiments if experiment.name == name)


def load(folder):
    """Returns the page of a folder of results."""
    content = json.loads((folder / "page.json").read_text())
    order = content.pop("experiments")
    files = {path.stem for path in folder.glob("*.json")} - {"page"}
    if files != set(order) or len(order) != len(files):
        raise Malformed(f"page.json does not list the files of the folder: {files ^ set(order)}")
    experiments = [Experiment(name, json.loads((folder / f"{name}.json").read_text())) for name in order]
    return Page(experiments=experiments, **content)


def number(value):
    """Returns a figure as text, with thousands separators and no more digits than were given."""
    if isinstance(value, str):
        return value
    if isinstance(value, int) or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}".rstrip("0").rstrip(".")


def with_unit(text, unit):
    return text + unit if unit[:1] in ("×", "%", "") else f"{text} {unit}"


def ratio(value):
    """Returns a quotient as text, with two decimals below 10 and one above."""
    return f"{value:.1f}" if value >= 9.995 else f"{value:.2f}"
