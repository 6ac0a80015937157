"""Finds the comments of Rust and Python files."""

import ast
import io
import re
import tokenize
from dataclasses import dataclass

RUST_LINE = re.compile(r"^(\s*)(///|//!|//)(?!/)( ?)(.*)$")
RUST_STRING = re.compile(r'''//[^\n]*|/\*.*?\*/|\bb?r(?P<mark>\#*)"(?P<raw>.*?)"(?P=mark)|b?"(?P<text>(?:[^"\\]|\\.)*)"|'''
                         r"""'(?:[^'\\]|\\[^u]|\\u\{[^}]*\})'|'\w+""", re.DOTALL)
FUNCTION = re.compile(r"^\s*(pub(\([^)]*\))? )?(default )?(const )?(async )?(unsafe )?(extern \"C\" )?fn \w+")


@dataclass
class Comment:
    """A block of consecutive comment lines, or a docstring."""

    #: Number of the first line, from 1.
    line: int
    #: Number of the last line.
    end: int
    #: Lines of the comment, without the marks and the indentation.
    lines: list
    #: "function" for the documentation of a function that is no test, "item" for that of another item, "inner" for that of a module, "code" for
    #: a comment between statements.
    kind: str


def of_rust(text):
    """Returns the comments of a Rust file that stand on lines of their own."""
    lines = text.split("\n")
    comments, at = [], 0
    in_string = raw_string_lines(text)
    while at < len(lines):
        match = RUST_LINE.match(lines[at])
        if not match or at + 1 in in_string:
            at += 1
            continue
        mark, start, found = match.group(2), at, []
        while at < len(lines) and (match := RUST_LINE.match(lines[at])) and match.group(2) == mark:
            found.append(match.group(4))
            at += 1
        comments.append(Comment(start + 1, at, found, rust_kind(mark, lines, at)))
    return comments


def strings_of_rust(text):
    """Returns pairs of a line's number and the text of a string literal there. A line break that is escaped, and the indentation behind it, are
    left out."""
    found = []
    for match in RUST_STRING.finditer(text):
        if (literal := match["raw"]) is None and (literal := match["text"]) is not None:
            literal = re.sub(r"\\\n\s*", "", literal)
        if literal is not None:
            found.append((text.count("\n", 0, match.start()) + 1, literal))
    return found


def raw_string_lines(text):
    """Returns the numbers of the lines that begin within a raw string."""
    inside = set()
    for match in re.finditer(r'\br(#*)"', text):
        end = text.find('"' + match.group(1), match.end())
        first = text.count("\n", 0, match.start()) + 1
        last = text.count("\n", 0, end) + 1 if end >= 0 else first
        inside.update(range(first + 1, last + 1))
    return inside


def rust_kind(mark, lines, at):
    if mark == "//!":
        return "inner"
    if mark == "//":
        return "code"
    is_test = False
    while at < len(lines) and (lines[at].strip().startswith(("#", "//")) or re.match(r"^\s*[)\]\w\", =]*\)?\]$", lines[at])):
        is_test |= re.match(r"\s*#\[(tokio::)?test|\s*#\[case", lines[at]) is not None
        at += 1
    is_function = at < len(lines) and FUNCTION.match(lines[at]) is not None
    return "function" if is_function and not is_test else "item"


def of_python(text):
    """Returns the comments and docstrings of a Python file."""
    comments = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and (doc := ast.get_docstring(node)):
            first = node.body[0]
            is_function = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and not node.name.startswith("test_")
            kind = "function" if is_function else "inner" if isinstance(node, ast.Module) else "item"
            comments.append(Comment(first.lineno, first.end_lineno, doc.split("\n"), kind))
    lines = []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT and not token.line[:token.start[1]].strip() and not token.string.startswith("#!"):
            lines.append((token.start[0], re.sub(r"^#:? ?", "", token.string)))
    while lines:
        first = last = lines[0][0]
        found = [lines.pop(0)[1]]
        while lines and lines[0][0] == last + 1:
            last, line = lines.pop(0)
            found.append(line)
        comments.append(Comment(first, last, found, "code"))
    return sorted(comments, key=lambda comment: comment.line)


def paragraphs(lines):
    """Returns the paragraphs of a comment as texts: list entries and table rows apart, without code blocks and headings."""
    found, fenced, new = [], False, True
    for line in lines:
        stripped = line.strip()
        if stripped.startswith("```"):
            fenced, new = not fenced, True
        elif fenced or line.startswith("    ") or stripped.startswith(("#", "|")) or not stripped:
            new = True
        elif new or re.match(r"([-*]|\d+\.) ", stripped):
            found.append(stripped)
            new = False
        else:
            found[-1] += " " + stripped
    return found
