"""Draws the chart of the speed relative to Cassandra: a bar for each operation, on a logarithmic scale that begins at Cassandra's speed.

The drawing has light and dark colours, which the reader's setting chooses, and its own background, so that it is readable everywhere.
"""

import math
from xml.sax.saxutils import escape

from .experiments import SERVERS, ratio

WIDTH = 860
LEFT, RIGHT, TOP, BAR, ROW = 262, 214, 84, 20, 34
TICKS = [1, 2, 5, 10, 20, 50, 100]
STYLE = """
.ground { fill: #ffffff; stroke: #d0d7de } .grid { stroke: #d8dee4 } .base { stroke: #57606a; stroke-width: 1.5 }
.bar { fill: #0a6ebd } text { font: 13px system-ui, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .muted { fill: #57606a; font-size: 12px } .value { font-weight: 600 }
.halo { stroke: #ffffff; stroke-width: 6; stroke-linejoin: round }
@media (prefers-color-scheme: dark) {
.ground { fill: #0d1117; stroke: #30363d } .grid { stroke: #2a3038 } .base { stroke: #9198a1 } .bar { fill: #4aa3ef }
text { fill: #e6edf3 } .muted { fill: #9da7b3 } .halo { stroke: #0d1117 } }
"""


def render(page):
    """Returns the drawing as SVG."""
    bars = [(page.experiment(name), operation, label) for name, operation, label in page.chart["bars"]]
    height = TOP + ROW * len(bars) + 62
    dates = sorted({experiment.date for experiment, _, _ in bars})
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">',
        f"<title>{escape(page.chart['title'])}</title>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" x="0.5" y="0.5" width="{WIDTH - 1}" height="{height - 1}" rx="6"/>',
        text(20, 30, page.chart["title"], "title"),
        text(20, 50, "Times as many as Cassandra (1×), on a logarithmic scale; longer is faster. Medians with 64 requests in flight, each ratio of one run.", "muted"),
    ]
    bottom = TOP + ROW * len(bars)
    for tick in TICKS:
        parts.append(f'<line class="{"base" if tick == 1 else "grid"}" x1="{place(tick)}" y1="{TOP - 6}" x2="{place(tick)}" y2="{bottom}"/>')
        parts.append(text(place(tick), bottom + 18, f"{tick}×", "muted", "middle"))
    for at, (experiment, operation, label) in enumerate(bars):
        parts += bar(TOP + ROW * at, experiment, operation, label)
    parts.append(text(20, height - 16, f"{' and '.join(dates)}; {page.machine_short}. Figures: docs/benchmarks.md", "muted"))
    return "\n".join(parts) + "\n</svg>\n"


def place(factor):
    """Returns the position of a factor on the scale."""
    return round(LEFT + (WIDTH - LEFT - RIGHT) * math.log(factor) / math.log(TICKS[-1]), 1)


def bar(y, experiment, operation, label):
    """Returns the label, the bar, and the figures after it."""
    column = experiment.columns.index("op/s")
    helenus, cassandra = (experiment.comparison[operation][server][column] for server in SERVERS)
    end, middle = place(helenus / cassandra), y + BAR / 2 + 4.5
    factor = f"{ratio(helenus / cassandra)}×"
    return [
        text(LEFT - 12, middle, label, "", "end"),
        f'<rect class="bar" x="{LEFT}" y="{y}" width="{round(end - LEFT, 1)}" height="{BAR}" rx="2"/>',
        # The halo separates the letters from the lines of the grid.
        text(end + 8, middle, factor, "value halo"),
        text(end + 8, middle, factor, "value"),
        text(WIDTH - 24, middle, f"{helenus:,} against {cassandra:,}/s", "muted", "end"),
    ]


def text(x, y, content, style, anchor="start"):
    return f'<text x="{x}" y="{y}" class="{style}" text-anchor="{anchor}">{escape(content)}</text>'
