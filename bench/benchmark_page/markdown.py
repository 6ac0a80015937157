"""The page: the machine, the scoreboard, a table for each experiment."""

import re

from .experiments import SERVERS, number, ratio

HEAD = """<!-- Written by bench/page from bench/results; change those and run it. -->

# Benchmarks

What was measured, with which command, and what falls short. [`bench/run`](../bench/README.md) measures it all again; the
[engineering log](engineering-log-benchmarks.md) has earlier runs and what was tried.
"""


def render(page):
    """The whole page."""
    parts = [HEAD, "## Machine\n", "\n".join(f"- {line}" for line in page.machine) + "\n"]
    parts += [f"![{page.chart['title']}]({page.chart['file'].removeprefix('docs/')})\n", scoreboard(page)]
    parts += [section(experiment) for experiment in page.experiments]
    parts += [f"## Not measured yet\n\n{page.not_measured}\n"]
    return "\n".join(parts)


def scoreboard(page):
    """What is wanted, the latest median, and whether that is met."""
    against = [experiment for experiment in page.experiments if experiment.comparison]
    alone = [experiment for experiment in page.experiments if not experiment.comparison]
    return f"""## Scoreboard

Where there are several figures, these are the smallest and the largest. Helenus' figure over Cassandra's in the same run:

{targets(against)}
Helenus alone:

{targets(alone)}"""


def targets(experiments):
    rows = [
        [target.name, target.wanted, target.latest, verdict(target), f"[{experiment.title}](#{anchor(experiment.title)})"]
        for experiment in experiments
        for target in experiment.targets
    ]
    return table(["target", "wanted", "latest", "verdict", "experiment"], rows)


def verdict(target):
    return "met" if target.is_met else "**falls short**"


def anchor(title):
    """The anchor that GitHub and mdbook make of a heading."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def section(experiment):
    """A heading, the command, the table, the notes."""
    lines = [f"## {experiment.title}\n", f"{experiment.date}, `{experiment.command}`\n"]
    if experiment.about:
        lines.append(f"{experiment.about}\n")
    lines.append(comparison(experiment) if experiment.comparison else plain(experiment))
    lines += [f"{note}\n" for note in experiment.notes]
    return "\n".join(lines)


def comparison(experiment):
    """A row for each operation: the figures of both servers, and their ratio."""
    rows = [
        [operation] + [cell(*figures) for figures in zip(*(sides[server] for server in SERVERS))]
        for operation, sides in experiment.comparison.items()
    ]
    return f"{SERVERS[0]} / {SERVERS[1]}, and **their ratio**:\n\n" + table(["operation"] + experiment.columns, rows)


def cell(helenus, cassandra):
    return f"{figure(helenus)} / {figure(cassandra)}<br>**{ratio(helenus / cassandra)}**"


def figure(value):
    """A figure of a comparison, with the digits that `helenus-compare` prints."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def plain(experiment):
    return table(experiment.columns, [[number(value) for value in cells] for cells in experiment.rows])


def table(heads, rows):
    lines = [heads, ["---"] * len(heads)] + rows
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
