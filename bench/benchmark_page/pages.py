"""The pages of benchmarks: `docs/benchmarks.md` with the scoreboard, a page for all targets, and a page for each experiment.

`outputs` returns the text of each page by its path in the repository. The lists of the book (`docs/SUMMARY.md`) are written by hand;
`summary` returns the lines that belong there.
"""

import datetime
import re

from .markdown import comparison, plain, table, verdict

WRITTEN = "<!-- Written by bench/page from bench/results; change those and run it. -->\n"
FOLDER = "docs/benchmarks"
#: Age in days, relative to the newest experiment, above which figures show their date.
OLD_AFTER_DAYS = 3
#: Maximum length of a command on the scoreboard. The page of the experiment has the whole command.
COMMAND_LEN_MAX = 110
LINK = re.compile(r"\]\((?![a-z]+:|#|/)([^()\s]+)\)")


def outputs(page):
    """Returns the text of each page, by its path in the repository."""
    texts = {f"{FOLDER}.md": front(page), f"{FOLDER}/targets.md": all_targets(page)}
    for experiment in page.experiments:
        texts[f"{FOLDER}/{experiment.name}.md"] = one_experiment(experiment)
    return texts


def summary(page):
    """Returns the lines of the book's summary below the line of the benchmarks."""
    entries = [("All targets", "targets")] + [(experiment.title, experiment.name) for experiment in page.experiments]
    return "".join(f"  - [{title}](benchmarks/{name}.md)\n" for title, name in entries)


def front(page):
    """Returns the first page: the scoreboard, the machine, the chart, and the list of the experiments."""
    targets = [target for experiment in page.experiments for target in experiment.targets]
    met = sum(target.is_met for target in targets)
    machine = "\n".join(f"- {line}" for line in page.machine)
    experiments = "".join(f"- {link(experiment, 'benchmarks/')} ({experiment.date})\n" for experiment in page.experiments)
    return f"""{WRITTEN}
# Benchmarks

## Scoreboard

{met} of [{len(targets)} targets](benchmarks/targets.md) are met. The scoreboard has one row for each experiment with targets: its first target that falls
short, or else its first target. A figure with × and no other unit is Helenus' figure over Cassandra's in the same run, unless the target names another
comparison. A range is the smallest and the largest of several figures. A figure with a date is more than {OLD_AFTER_DAYS} days older than the newest.

{scoreboard(page)}
[`bench/run`](../bench/README.md) measures everything again. The [engineering log](engineering-log-benchmarks.md) has earlier runs and experiments that were
tried.

## Machine

{machine}

![{page.chart['title']}]({page.chart['file'].removeprefix('docs/')})

## Experiments

{experiments}
## Not measured yet

{page.not_measured}
"""


def scoreboard(page):
    """Returns the scoreboard: a row for each experiment with targets."""
    newest = max(experiment.date for experiment in page.experiments)
    rows = []
    for experiment in page.experiments:
        chosen = next((target for target in experiment.targets if not target.is_met), next(iter(experiment.targets), None))
        if chosen:
            rows.append([f"{link(experiment, 'benchmarks/')}: {chosen.name}", chosen.wanted, dated(chosen.latest, experiment, newest),
                         verdict(chosen), f"`{shortened(experiment.command)}`"])
    return table(["operation", "target", "latest figure", "verdict", "command"], rows)


def dated(latest, experiment, newest):
    """Returns the figure, with the date of its experiment if it is old."""
    age = datetime.date.fromisoformat(newest) - datetime.date.fromisoformat(experiment.date)
    return f"{latest} ({experiment.date})" if age.days > OLD_AFTER_DAYS else latest


def shortened(command):
    return command if len(command) <= COMMAND_LEN_MAX else command[:COMMAND_LEN_MAX].rsplit(" ", 1)[0] + " …"


def all_targets(page):
    """Returns the page with every target."""
    rows = [[link(experiment), target.name, target.wanted, target.latest, experiment.date, verdict(target)]
            for experiment in page.experiments for target in experiment.targets]
    return f"""{WRITTEN}
# All targets

Targets of [all experiments](../benchmarks.md). A range is the smallest and the largest of several figures.

{table(["experiment", "target", "wanted", "latest figure", "date", "verdict"], rows)}"""


def one_experiment(experiment):
    """Returns the page of an experiment: command, targets, figures, notes."""
    parts = [WRITTEN, f"# {experiment.title}\n", f"{experiment.date}, `{experiment.command}`. [Scoreboard and machine](../benchmarks.md).\n"]
    if experiment.about:
        parts.append(f"{from_folder(experiment.about)}\n")
    if experiment.targets:
        parts += ["## Targets\n", table(["target", "wanted", "latest figure", "verdict"],
                                        [[target.name, target.wanted, target.latest, verdict(target)] for target in experiment.targets])]
    parts += ["## Figures\n", comparison(experiment) if experiment.comparison else plain(experiment)]
    parts += [f"{from_folder(note)}\n" for note in experiment.notes]
    return "\n".join(parts)


def link(experiment, folder=""):
    return f"[{experiment.title}]({folder}{experiment.name}.md)"


def from_folder(text):
    """Returns the text with links relative to the folder of the pages. Its links are relative to `docs/`."""
    return LINK.sub(r"](../\1)", text)
