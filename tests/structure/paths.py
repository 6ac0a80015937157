"""Finds paths in documentation that do not exist: those in backticks in Markdown files and in the headers of Rust modules (`//!`).

A text in backticks is a path of the repository if

- it begins with one of FOLDERS or with the name of a crate, and contains a slash, or
- it ends with one of ENDINGS.

Paths are relative to the repository, to `crates/`, to the folder of the file, or to its crate and the crate's `src/`. A path with one of ENDINGS may
leave out leading folders: a Markdown file may name any file of the repository like that, and a Rust file those of its crate.
Globs must match something. Placeholders (`<name>`, `{name}`, `…`) are not checked.
"""

import fnmatch
import os
import posixpath
import re

FOLDERS = ("crates", "docs", "tests", "bench", "fuzz", ".ci", ".github", "packaging", "deploy", "monitoring")
ENDINGS = (".rs", ".py", ".md")
SKIPPED = {".git", "target", ".cache", "node_modules", "__pycache__"}
SPAN = re.compile(r"(?<!`)`([^`\s]+)`(?!`)")
PATH = re.compile(r"[\w.@+*?\[\]/-]+")
LINE_SUFFIX = re.compile(r"(:\d+(-\d+)?)+$|#.*$")
HEADER = re.compile(r"\s*//!")


def check(root):
    """Returns a line for each path that does not exist."""
    known = Repository(root)
    wrong = []
    for name in sorted(known.files):
        if not name.endswith((".md", ".rs")):
            continue
        text = (root / name).read_text()
        for number, line in documentation(name, text):
            wrong += [f"{name}:{number}: there is no {path}" for path in paths(line, known.crates) if not known.has(path, name)]
    return wrong


def documentation(name, text):
    """Returns pairs of a line's number and the line: those of a Markdown file outside of fenced code, or those of a Rust module's header."""
    found, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if name.endswith(".rs"):
            if HEADER.match(line):
                found.append((number, line))
        elif line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            found.append((number, line))
    return found


def paths(line, crates):
    """Returns the paths in a line that are paths of a repository with such crates, without line numbers and anchors."""
    found = []
    for span in SPAN.findall(line):
        path = LINE_SUFFIX.sub("", span)
        if not PATH.fullmatch(path) or path.startswith("/"):
            continue
        first, slash, _ = path.removeprefix("./").partition("/")
        if (slash and first in FOLDERS + tuple(crates)) or (path.endswith(ENDINGS) and not path.startswith((".", "*"))):
            found.append(path.removeprefix("./").rstrip("/"))
    return found


class Repository:
    """The files and folders of a repository, by their paths from its root."""

    def __init__(self, root):
        self.files = set()
        self.folders = set()
        for folder, folders, files in os.walk(root):
            folders[:] = [name for name in folders if name not in SKIPPED]
            at = os.path.relpath(folder, root).replace(os.sep, "/")
            self.folders.update(posixpath.normpath(posixpath.join(at, name)) for name in folders)
            self.files.update(posixpath.normpath(posixpath.join(at, name)) for name in files)
        #: Names of the folders in `crates/`.
        self.crates = {name.split("/")[1] for name in self.folders if name.count("/") == 1 and name.startswith("crates/")}

    def has(self, path, named_in):
        """Returns true if the path exists as the file `named_in` names it."""
        folder = posixpath.dirname(named_in)
        crate = "/".join(named_in.split("/")[:2]) if named_in.startswith("crates/") else None
        bases = ["", "crates", folder] + ([crate, f"{crate}/src"] if crate else [])
        if any(self.exists(posixpath.normpath(posixpath.join(base, path))) for base in bases):
            return True
        if not path.endswith(ENDINGS):
            return False
        within = f"{crate}/" if crate and named_in.endswith(".rs") else ""
        return any(name.startswith(within) and fnmatch.fnmatchcase(name, f"*/{path}") for name in self.files)

    def exists(self, path):
        """Returns true if a file or folder has the path, or matches it if it is a glob."""
        if path in self.files or path in self.folders:
            return True
        return re.search(r"[*?\[]", path) is not None and any(fnmatch.fnmatchcase(name, path) for name in self.files | self.folders)


if __name__ == "__main__":
    import pathlib
    import sys

    lines = check(pathlib.Path(__file__).resolve().parent.parent.parent)
    print("\n".join(lines))
    sys.exit(bool(lines))
