"""A preprocessor of mdbook: links between files of the repository become links between pages of the book.

A page in `included/` shows a file from elsewhere in the repository, whose links are relative to that file. A link to a file that is no
page of the book becomes plain text. A link to a file or a heading that does not exist fails the build.
"""

import json
import pathlib
import posixpath
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
INCLUDE = re.compile(r"\{\{#include (\S+?)\}\}")
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
SCHEME = re.compile(r"[a-z]+:")


def origins(docs=ROOT / "docs"):
    """The page of each file that is in the book, by paths in the repository: {"COMPAT.md": "docs/included/compatibility.md"}."""
    pages = {}
    for name in re.findall(r"\]\((\S+?\.md)\)", (docs / "SUMMARY.md").read_text()):
        page = f"docs/{name}"
        include = INCLUDE.fullmatch((docs / name).read_text().strip())
        origin = posixpath.normpath(posixpath.join(posixpath.dirname(page), include[1])) if include else page
        pages[origin] = page
    return pages


def prose(text):
    """The text without its code blocks and code spans."""
    kept, in_fence = [], False
    for line in text.split("\n"):
        if line.lstrip().startswith("```"):
            in_fence = not in_fence
        elif not in_fence and not line.startswith("    "):
            kept.append(re.sub(r"`[^`]*`", "", line))
    return "\n".join(kept)


def anchors(text):
    """The ids that headings get."""
    ids = set()
    for line in text.split("\n"):
        heading = re.match(r"#+ (.*)", line)
        if heading:
            title = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
            ids.add(re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-"))
    return ids


def broken_links(origin, text, root=ROOT):
    """What is wrong with the links of a file of the repository, in words."""
    problems = []
    for _, _, target in LINK.findall(prose(text)):
        if SCHEME.match(target):
            continue
        path, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path)) if path else origin
        if not (root / path).exists():
            problems.append(f"{origin}: {target}: there is no {path}")
        elif anchor and path.endswith(".md") and anchor not in anchors((root / path).read_text()):
            problems.append(f"{origin}: {target}: {path} has no such heading")
    return problems


def rewrite(origin, page, text, pages):
    """The text of a file as its page shows it."""
    def link(match):
        image, label, target = match.groups()
        if SCHEME.match(target) or target.startswith("#"):
            return match[0]
        path, _, anchor = target.partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(origin), path))
        if path in pages or (image and path.startswith("docs/")):
            relative = posixpath.relpath(pages.get(path, path), posixpath.dirname(page))
            return f"{image}[{label}]({relative}{'#' + anchor if anchor else ''})"
        return label
    return LINK.sub(link, text)


def chapters(items):
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter:
            yield chapter
            yield from chapters(chapter["sub_items"])


def main():
    if sys.argv[1:2] == ["supports"]:
        return 0
    _, book = json.load(sys.stdin)
    pages = origins()
    origin_of = {page: origin for origin, page in pages.items()}
    problems = []
    for chapter in chapters(book.get("items") or book.get("sections") or []):
        page = f"docs/{chapter['path']}"
        problems += broken_links(origin_of[page], chapter["content"])
        chapter["content"] = rewrite(origin_of[page], page, chapter["content"], pages)
    print("\n".join(problems), file=sys.stderr, end="\n" if problems else "")
    json.dump(book, sys.stdout)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
