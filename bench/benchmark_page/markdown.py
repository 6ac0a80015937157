"""Formats the page as Markdown: the machine, the scoreboard, a table for each experiment."""

from .experiments import SERVERS, number, ratio


def verdict(target):
    return "met" if target.is_met else "**falls short**"


def comparison(experiment):
    """Returns a table with a row for each operation: the figures of both servers, and their ratio."""
    rows = [
        [operation] + [cell(*figures) for figures in zip(*(sides[server] for server in SERVERS))]
        for operation, sides in experiment.comparison.items()
    ]
    return f"{SERVERS[0]} / {SERVERS[1]}, and **their ratio**:\n\n" + table(["operation"] + experiment.columns, rows)


def cell(helenus, cassandra):
    return f"{figure(helenus)} / {figure(cassandra)}<br>**{ratio(helenus / cassandra)}**"


def figure(value):
    """Returns a figure of a comparison, with the same digits as `helenus-compare`."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}"


def plain(experiment):
    return table(experiment.columns, [[number(value) for value in cells] for cells in experiment.rows])


def table(heads, rows):
    lines = [heads, ["---"] * len(heads)] + rows
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)
