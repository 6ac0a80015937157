"""Assertions in Rust that bound a measured time or memory by a constant, found by the shape of the text."""

import re

from stopwatches_finding import LIMIT_S, Finding

DURATION = re.compile(r"Duration::from_(secs|millis|micros|nanos|secs_f64|secs_f32)\(\s*([\d_.]+)\s*\)|Duration::(ZERO)")
SECONDS = {"secs": 1, "millis": 1e-3, "micros": 1e-6, "nanos": 1e-9, "secs_f64": 1, "secs_f32": 1}
CONSTANT = re.compile(r"const (\w+): (?:\w+::)*Duration =([^;]+);")
BOUND = re.compile(r"let (?:mut )?(\w+)(?:: [\w:]+)? =([^;]+);")
MEASURED = re.compile(r"\.elapsed\(\)|\.duration_since\(|resident_memory_bytes\(|resident_bytes\(")
FUNCTION = re.compile(r"(?:#\[[^\]]*\]\s*)*(?:pub(?:\([a-z]+\))? )?(?:const )?(?:async )?fn \w+")
ASSERTION = re.compile(r"\bassert!\(")
TIMEOUT = re.compile(r"\btimeout\(")


def in_rust(code):
    """Returns the findings in a Rust test, whose comments and literals have been blanked out."""
    constants = {name: seconds for name, text in CONSTANT.findall(code) if (seconds := duration(text, {})) is not None}
    starts = [match for match in FUNCTION.finditer(code)]
    ends = [match.start() for match in starts[1:]] + [len(code)]
    found = []
    for match, end in zip(starts, ends):
        # Simulated time does not depend on the machine.
        if "start_paused" not in match.group():
            found += in_function(code, match.start(), end, constants)
    return found


def in_function(code, start, end, constants):
    text = code[start:end]
    bounds, measured, deadlines = dict(constants), set(), {}
    for name, value in BOUND.findall(text):
        if MEASURED.search(value):
            measured.add(name)
        elif "Instant::now()" in value and (seconds := duration(value, bounds)) is not None:
            deadlines[name] = seconds
        elif (seconds := duration(value, bounds)) is not None and "(" not in DURATION.sub("", value):
            bounds[name] = seconds
    is_measured = lambda side: MEASURED.search(side) or words(side) & measured
    for match in ASSERTION.finditer(text):
        asserted = enclosed(text, match.end() - 1)
        for left, operator, right in comparisons(first_argument(asserted)):
            if operator in (">", ">="):
                left, right = right, left
            seconds = duration(right, bounds)
            if "Instant::now()" in left and words(right) & deadlines.keys():
                seconds = min(deadlines[name] for name in words(right) & deadlines.keys())
            elif not is_measured(left) or is_measured(right):
                continue
            if seconds is None or seconds < LIMIT_S:
                yield Finding(line_of(code, start + match.start()), f"{left.strip()} < {right.strip()}", "a time is compared with a constant")
    for match in TIMEOUT.finditer(text):
        inner = enclosed(text, match.end() - 1)
        seconds = duration(first_argument(inner), bounds)
        after = text[match.end() + len(inner) + 1:]
        if seconds is not None and seconds < LIMIT_S and re.match(r"\s*\.await\s*\.(unwrap|expect)\(", after):
            yield Finding(line_of(code, start + match.start()), f"timeout({first_argument(inner).strip()}, …)",
                          "the wait is over too soon on a busy machine")


def duration(text, bounds):
    """Returns the total seconds of the durations in an expression. `None` if it has none."""
    found = [0 if zero else float(number.replace("_", "")) * SECONDS[scale] for scale, number, zero in DURATION.findall(text)]
    found += [bounds[name] for name in words(DURATION.sub("", text)) & bounds.keys()]
    return sum(found) if found else None


def words(text):
    return set(re.findall(r"\w+", text))


def line_of(code, place):
    return code.count("\n", 0, place) + 1


def enclosed(text, opening):
    """Returns the text between the parenthesis at `opening` and its match."""
    depth = 0
    for place in range(opening, len(text)):
        depth += {"(": 1, ")": -1}.get(text[place], 0)
        if depth == 0:
            return text[opening + 1:place]
    return text[opening + 1:]


def first_argument(text):
    depth = 0
    for place, sign in enumerate(text):
        depth += {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            return text[:place]
    return text


def comparisons(text):
    """Yields pairs that are compared, with the operator between them."""
    for part in re.split(r"&&|\|\|", text):
        if match := re.search(r"(?<![-=<>])\s(<=|>=|<|>)\s", part):
            yield part[:match.start()], match.group(1), part[match.end():]
