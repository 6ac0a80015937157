"""Checks the sentences of comments, documentation and commits.

- The first word of each paragraph of a comment names the thing or is its verb (FIRST_WORDS lists those that do neither). The documentation of a
  function begins with a verb in the third person.
- FORBIDDEN lists words for which this field has others. They are looked for in comments, in documents and in the texts of programs: string literals
  of three words or more, outside of tests.
- A sentence of a comment has at most 30 words.
- The text of an error that names no value says what to do (REMEDY). Texts of Cassandra's own tools end with a period and are not looked at.
- The subject of a commit since FIRST_COMMIT is `area: effect` and has at most 72 characters.
"""

import re
import subprocess

from comments import of_python, of_rust, paragraphs, strings_of_rust

FIRST_WORDS = set("What Who Whose Whoever Which Whether How When Where Why Of For That Those Such Others Some None Nobody It They Its Their These "
                  "Nothing".split())
# Pairs of a pattern and what to write in its place.
FORBIDDEN = [(re.compile(rf"\b({words})\b", re.IGNORECASE), instead) for words, instead in [
    (r"told|tells?|telling", "report, notify, name or return"),
    (r"ask|asks|asked|asking", "request, query or call"),
    (r"anew", "again"),
    (r"nobody|whoever", "no client, no node; the caller, other nodes"),
    (r"let(s|ting)? (\w+ )?go", "release"),
    (r"put(s|ting)? back", "restore"),
    (r"(as )?of then", "as of that time"),
    (r"the past", "history"),
    (r"hangs? together", "the exact relation"),
]]
# A guardrail of Cassandra has the words "too far in the past".
FORBIDDEN_IN_TEXTS = [(re.compile(rf"(?<!in ){pattern.pattern}", pattern.flags), instead) for pattern, instead in FORBIDDEN]
# A text of an error without a placeholder.
ERROR = re.compile(r'\b(?:bail|anyhow)!\(\s*"((?:[^"{\\]|\\.)*[^".{\\])"\s*\)')
REMEDY = re.compile(r"\b(give|use|set|stop|start|needs?|takes?|requires?|must|should|only|choose|try|run|connect|expected|see)\b")
WORDS_MAX = 30
SUBJECT_MAX = 72
SUBJECT = re.compile(r"^[a-z][a-z0-9_./, -]*: \S")
FIRST_COMMIT = "20d60457d025b1c9e0d121c2a8a34b36c5452400"
SOURCES = ("crates/*/src/**/*", "crates/*/tests/**/*", "crates/*/benches/**/*", "crates/*/build.rs", "bench/**/*", "fuzz/**/*", "tests/**/*")
DOCUMENTS = ("*.md", "docs/**/*.md", "tests/*.md", "bench/**/*.md", "crates/**/*.md")
GENERATED = ("crates/helenus-server/src/rpc/proto.rs",)


def check(root):
    """Returns a line for each sentence that breaks a rule."""
    wrong = []
    for path in files(root, SOURCES):
        if (language := language_of(path)) is not None:
            name = path.relative_to(root)
            text = path.read_text()
            found = in_source(text, language)
            if language == ".rs" and not is_test(name):
                found += in_texts(text)
            wrong += [f"{name}:{line}: {why}" for line, why in found]
    for path in files(root, DOCUMENTS):
        name = path.relative_to(root)
        wrong += [f"{name}:{line}: {why}" for line, why in in_document(path.read_text())]
    return wrong


def language_of(path):
    """Returns the suffix of a source file's language, or None if it is neither Rust nor Python."""
    if path.suffix in (".rs", ".py"):
        return path.suffix
    if path.suffix:
        return None
    with path.open("rb") as f:
        return ".py" if f.readline().startswith(b"#!/usr/bin/env python3") else None


def is_test(name):
    """Returns true if a Rust file has only tests."""
    return "tests" in name.parts or name.stem.endswith("tests")


def files(root, patterns):
    """Returns the files of the repository that match, in order."""
    found = {path for pattern in patterns for path in root.glob(pattern)}
    skipped = {".cache", "target", "cases"}
    return sorted(path for path in found
                  if path.is_file() and not skipped & set(path.relative_to(root).parts) and str(path.relative_to(root)) not in GENERATED)


def in_source(text, suffix):
    """Returns pairs of a line's number and what is wrong there."""
    comments = of_rust(text) if suffix == ".rs" else of_python(text)
    wrong = [(comment.line, why) for comment in comments for why in in_comment(comment)]
    return wrong + (in_errors(text) if suffix == ".rs" else [])


def without_tests(text):
    """Returns a Rust source up to its module of tests."""
    return text.partition("#[cfg(test)]\nmod tests {")[0]


def in_texts(text):
    """Returns pairs of a line's number and what is wrong with a text that the program shows."""
    found = [(line, re.sub(r"\{[^{}]*\}", "VALUE", literal)) for line, literal in strings_of_rust(without_tests(text)) if len(literal.split()) >= 3]
    return [(line, f"{match.group()!r} in a text: write {instead}")
            for line, literal in found for pattern, instead in FORBIDDEN_IN_TEXTS for match in pattern.finditer(literal)]


def in_errors(text):
    """Returns pairs of a line's number and what is wrong with the text of an error there."""
    code = without_tests(text)
    return [(code.count("\n", 0, match.start()) + 1, f"an error without a value or a remedy: {match.group(1)!r}")
            for match in ERROR.finditer(code) if not REMEDY.search(match.group(1))]


def in_comment(comment):
    """Returns what is wrong with a comment."""
    texts = paragraphs(comment.lines)
    wrong = []
    for number, text in enumerate(texts):
        word = re.split(r"[\s,;:.]", text, maxsplit=1)[0]
        if word in FIRST_WORDS or text.startswith("The same"):
            wrong.append(f"begins with {word!r}: name the thing, or begin with a verb")
        elif number == 0 and comment.kind == "function" and not re.fullmatch(r"[A-Z][a-z]+s|`\S+", word):
            wrong.append(f"begins with {word!r}: begin a function's comment with a verb, such as Returns")
    for text in texts:
        wrong += in_text(text)
        wrong += [f"a sentence of {len(words)} words: {' '.join(words[:8])} ..." for words in sentences(text) if len(words) > WORDS_MAX]
    return wrong


def in_text(text):
    """Returns what is wrong with the words of a text. Code in backticks and quoted texts are not looked at."""
    plain = re.sub(r'`[^`]*`|"[^"]*"|“[^”]*”|https?://\S+', "CODE", text)
    return [f"{match.group()!r}: write {instead}" for pattern, instead in FORBIDDEN for match in pattern.finditer(plain)]


def sentences(text):
    """Returns the words of each sentence."""
    plain = re.sub(r"`[^`]*`", "CODE", text)
    return [sentence.split() for sentence in re.split(r"(?<=[.!?:;])\s+", plain)]


def in_document(text):
    """Returns pairs of a line's number and what is wrong there."""
    wrong, fenced = [], False
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        elif not fenced:
            wrong += [(number, why) for why in in_text(line)]
    return wrong


def in_commits(root):
    """Returns what is wrong with the subjects of the commits since FIRST_COMMIT. Empty if the history is not there."""
    known = subprocess.run(["git", "cat-file", "-e", f"{FIRST_COMMIT}^{{commit}}"], cwd=root, capture_output=True)
    if known.returncode != 0:
        return []
    log = subprocess.run(["git", "log", "--no-merges", "--format=%h %s", f"{FIRST_COMMIT}..HEAD"], cwd=root, capture_output=True, text=True, check=True)
    return [f"commit {commit}: {why}" for commit, _, subject in (line.partition(" ") for line in log.stdout.splitlines()) for why in in_subject(subject)]


def in_subject(subject):
    """Returns what is wrong with the subject of a commit."""
    wrong = []
    if len(subject) > SUBJECT_MAX:
        wrong.append(f"a subject of {len(subject)} characters, where {SUBJECT_MAX} are allowed: {subject}")
    if not SUBJECT.match(subject):
        wrong.append(f"a subject that is not `area: effect`: {subject}")
    return wrong


if __name__ == "__main__":
    import pathlib
    import sys

    start = pathlib.Path(__file__).resolve().parent.parent.parent
    only = sys.argv[1:]
    lines = [line for line in check(start) if not only or line.startswith(tuple(only))]
    print("\n".join(lines))
    sys.exit(bool(lines))
