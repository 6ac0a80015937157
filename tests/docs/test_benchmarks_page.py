"""docs/benchmarks.md, the pages of docs/benchmarks and the chart are what `bench/page` writes from the figures of bench/results. No server is needed."""

import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]

sys.path.insert(0, str(ROOT / "bench"))
from benchmark_page import experiments, markdown, pages  # noqa: E402


def experiment(**content):
    return experiments.Experiment("x", {"title": "X", "date": "2026-01-01", "command": "x", **content})


def compared(**bounds):
    return experiment(columns=["op/s"], comparison={"read": {"Helenus": [200], "Cassandra": [400]}},
                      targets=[{"target": "t", "figures": [["read", "op/s"]], **bounds}])


def test_the_page_and_the_chart_are_written_from_the_results():
    checked = subprocess.run([sys.executable, ROOT / "bench/page", "--check"], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stderr


def test_the_book_lists_the_pages_of_all_experiments():
    page = experiments.load(ROOT / "bench/results")
    assert pages.summary(page) in (ROOT / "docs/SUMMARY.md").read_text()
    written = {str(path.relative_to(ROOT)) for path in (ROOT / "docs/benchmarks").glob("*.md")}
    assert written == {name for name in pages.outputs(page) if name.startswith("docs/benchmarks/")}


def test_a_link_fits_the_folder_of_the_page():
    assert pages.from_folder("[a](b.md), [c](https://x.org) and [d](#e)") == "[a](../b.md), [c](https://x.org) and [d](#e)"


def test_the_chart_is_well_formed():
    page = experiments.load(ROOT / "bench/results")
    xml.etree.ElementTree.parse(ROOT / page.chart["file"])


@pytest.mark.parametrize("bounds, is_met", [({"at_most": 0.5}, True), ({"at_most": 0.49}, False), ({"at_least": 0.5}, True), ({"at_least": 0.6}, False)])
def test_a_verdict_follows_from_the_figures(bounds, is_met):
    [target] = compared(**bounds).targets
    assert (target.is_met, target.latest) == (is_met, "0.50×")
    assert ("falls short" in markdown.verdict(target)) is not is_met


def test_several_figures_are_met_only_together():
    [target] = experiment(columns=["a", "b"], rows=[["x", 1], ["y", 3]], targets=[
        {"target": "t", "at_most": 2, "unit": "s", "figures": [["x", "b"], ["y", "b"]]}]).targets
    assert (target.wanted, target.latest, target.is_met) == ("at most 2 s", "1 to 3 s", False)


@pytest.mark.parametrize("content", [{"columns": ["a"], "rows": [["x", 1]]}, {"columns": ["a"], "rows": []}, {"columns": ["a"], "rows": [["x"]], "more": 1}])
def test_a_malformed_file_is_refused(content):
    with pytest.raises(experiments.Malformed):
        experiment(**content)
