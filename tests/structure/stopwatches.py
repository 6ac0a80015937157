"""Finds tests that fail when the machine is slow: assertions that bound an elapsed time or the memory of a process by a constant.

Upper bounds of 20 s and more are time limits, and allowed. Lower bounds are allowed, and so are comparisons of two measured figures.
`stopwatches.txt` lists exceptions.
"""

import re

from modules import NOT_CODE, blank
from stopwatches_in_python import in_python
from stopwatches_in_rust import in_rust


def check(root, exceptions):
    """Returns a line for each assertion in the tests of the repository that is not allowed, and for each exception that is not needed."""
    wrong, unused = [], set(exceptions)
    for path in test_files(root):
        name = str(path.relative_to(root))
        found = in_python(path.read_text()) if path.suffix == ".py" else in_rust(test_code(path))
        for finding in found:
            exception = next((of for of in exceptions if of[0] == name and of[1] == finding.text), None)
            if exception is None:
                wrong.append(f"{name}:{finding.line}: {finding.why}: {finding.text}")
            unused.discard(exception)
    if wrong:
        wrong.append("  Show what causes the time instead: a count, an order of events, bytes that are reserved; or compare with a control (tests/measured.py).")
    wrong += [f"{name}: not needed any more in stopwatches.txt: {text}" for name, text in sorted(unused)]
    return wrong


def test_files(root):
    """Returns the files with tests, in order."""
    python = [path for path in root.glob("tests/**/*.py") if not path.is_relative_to(root / "tests" / "structure") and ".cache" not in path.parts]
    return sorted(python) + sorted(root.glob("crates/*/src/**/*.rs")) + sorted(root.glob("crates/*/tests/**/*.rs"))


def read_exceptions(text):
    """Returns pairs of a file and an assertion. Each line must also have a reason."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, _, rest = line.partition(": ")
        assertion, _, reason = rest.partition(" # ")
        if not reason.strip():
            raise ValueError(f"stopwatches.txt:{number}: expected 'FILE: ASSERTION # REASON', got {line!r}")
        found.append((name.strip(), assertion.strip()))
    return found


def test_code(path):
    """Returns the code of the tests in a Rust file. The lines before them are blank, so that line numbers do not change."""
    text = NOT_CODE.sub(blank, path.read_text())
    if path.stem.endswith("tests") or "src" not in path.parts:
        return text
    inline = re.search(r"#\[cfg\(test\)\]\s*mod \w+ \{", text)
    return "\n" * text.count("\n", 0, inline.start()) + text[inline.start():] if inline else ""
