"""The documentation: it is built as a book, and its links resolve. No server is needed."""

import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
MDBOOK_VERSION = "0.5.4"

sys.path.insert(0, str(ROOT / "docs"))
import repository_links  # noqa: E402


@pytest.fixture(scope="session")
def mdbook():
    """Returns mdbook, which is built once into the cache of the tests."""
    root = pathlib.Path(os.environ.get("HELENUS_TEST_CACHE", ROOT / "tests/.cache")) / "mdbook"
    binary = root / "bin/mdbook"
    known = binary.exists() and subprocess.run([binary, "--version"], capture_output=True, text=True).stdout
    if not known or MDBOOK_VERSION not in known:
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CARGO_PROFILE_") and name != "CARGO_TARGET_DIR"}
        subprocess.run(["cargo", "install", "-q", "--debug", "mdbook", "--version", MDBOOK_VERSION, "--locked", "--force", "--no-default-features",
                        "--features", "search", "--root", root], check=True, env=environment)
    return binary


@pytest.mark.timeout(900)
def test_the_book_is_built_with_all_pages_and_a_search_index(mdbook, tmp_path):
    built = subprocess.run([mdbook, "build", ROOT / "docs", "--dest-dir", tmp_path], capture_output=True, text=True)
    assert built.returncode == 0, built.stderr
    for page in repository_links.origins().values():
        assert (tmp_path / page.removeprefix("docs/")).with_suffix(".html").exists(), page
    assert list(tmp_path.glob("searchindex*.js"))


def test_links_between_files_resolve():
    tracked = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True).stdout.split()
    files = set(tracked) | set(repository_links.origins())
    problems = [problem for name in sorted(files) if (ROOT / name).exists()
                for problem in repository_links.broken_links(name, (ROOT / name).read_text())]
    assert not problems, "\n".join(problems)


def test_every_page_of_the_folder_is_in_the_book():
    pages = {path for path in repository_links.origins() if path.startswith("docs/")}
    assert {f"docs/{file.name}" for file in (ROOT / "docs").glob("*.md")} - {"docs/SUMMARY.md"} <= pages


def test_a_broken_link_is_found():
    assert repository_links.broken_links("README.md", "see [it](docs/missing.md) and [there](README.md#nowhere)") != []
    assert len(repository_links.broken_links("README.md", "see [it](docs/missing.md) and [there](README.md#nowhere)")) == 2
