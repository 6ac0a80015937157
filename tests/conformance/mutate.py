"""Mutated statements: those of the cases with a token dropped, doubled, moved or replaced.

`compare --mutate SEED` runs them on both servers after the original statements, and prints the differences. Statements that affect other
cases are not mutated.
"""

import random
import re

from .cases import Step

TOKEN = re.compile(
    r"""\$\$.*?\$\$ | '(?:[^']|'')*' | "(?:[^"]|"")*" | [0-9a-f]{8}-[0-9a-f-]{27} | 0x[0-9a-f]* | \d+\.\d+(?:e[+-]?\d+)? | \d+
      | [a-z_]\w* | <= | >= | != | \s+ | .""", re.S | re.I | re.X)

LITERALS = """1 0 -1 2 null 'x' '' 1.5 -0.0 true 0xff 0x [1] [] {1} {} {1:2} {'a':1} (1,2) (1) NaN -Infinity 1d P1Y [null] {a:1} (int)1 (text)'x'
    550e8400-e29b-41d4-a716-446655440000 5c8a6dd0-ffa8-11e4-8ab3-7b1a3e1c0c5a '2015-01-01' '10:00:00' 9223372036854775808 2147483648 128 1e3
    '127.0.0.1' -(1) [[1]] ((1,2),3) 1+1""".split()
OPERATORS = ["=", "<", ">", "<=", ">=", "!=", "IN", "CONTAINS", "CONTAINS KEY", "LIKE", "IS NOT NULL", "+", "-", "*", "/", "%"]
FUNCTIONS = """max min count sum avg ttl writetime token to_json from_json blob_as_int int_as_blob to_date to_timestamp abs round map_keys
    collection_count collection_max mask_inner mask_default mask_null similarity_cosine maxwritetime text_as_blob exp set_sum map_values""".split()
WORDS = ["SELECT", "FROM", "WHERE", "AND", "ALLOW FILTERING", "LIMIT 1", "PER PARTITION LIMIT 1", "ORDER BY", "GROUP BY", "DISTINCT", "JSON", "AS",
         "IF EXISTS", "IF NOT EXISTS", "USING TTL 100", "USING TIMESTAMP 5", "SET", "VALUES", "INTO", "IN", "NOT", "NULL", "CONTAINS", "KEY",
         "STATIC", "PRIMARY KEY", "frozen", "DESC", "ASC", "TOKEN", "DEFAULT UNSET", "WITH", *"()[]{},.:;?*-+<>"]
SUFFIXES = ["[0]", "['a']", ".a", "[1..2]", "[null]", ".b", " AS z", "::int"]
RESERVED = set("""select insert update delete create drop alter from into values where and set table type index on if not exists using ttl
    timestamp begin batch apply unlogged counter limit per partition order by group allow filtering in is null primary key with clustering asc
    desc json distinct as token contains like static frozen materialized view custom""".split())

# Statements that affect other cases, have varying results, or take long.
SPARED = re.compile(r"keyspace|role|\buser\b|grant|revoke|truncate|\buse\b|now\(\)|uuid\(\)|current|\bdesc(ribe)?\s|system|identity|list\s"
                    r"|function|aggregate", re.I)
DDL = re.compile(r"\s*(create|alter|drop)\b", re.I)
LENGTH_MAX = 1500
# Directives under which outcomes differ from run to run.
UNSTEADY = ("mask", "retry", "wait", "batch")


def is_name(token):
    return re.match(r'[a-z_"]', token, re.I) is not None and token.lower() not in RESERVED


def is_literal(token):
    return re.match(r"['\d]|(null|true|false)$", token, re.I) is not None


def is_operator(token):
    return token.upper() in OPERATORS


def altered(rng, tokens, at, names):
    """Alters the token at a place, or others, in one of many ways. Returns the tokens."""
    def one(fits, change):
        places = [i for i, token in enumerate(tokens) if fits(token)]
        if places:
            place = rng.choice(places)
            tokens[place] = change(tokens[place])
    ways = [
        (2, lambda: tokens.pop(at)),
        (1, lambda: tokens.insert(at, tokens[at] + " ")),
        (1, lambda: tokens.append(tokens.pop(at))),
        (5, lambda: one(is_literal, lambda _: rng.choice(LITERALS))),
        (4, lambda: one(is_name, lambda _: rng.choice(names))),
        (2, lambda: one(is_operator, lambda _: f" {rng.choice(OPERATORS)} ")),
        (2, lambda: one(lambda token: is_literal(token) or is_name(token), lambda token: f"{rng.choice(FUNCTIONS)}({token})")),
        (2, lambda: tokens.insert(at + 1, f" {rng.choice(WORDS)} ")),
        (1, lambda: tokens.__setitem__(at, rng.choice(WORDS))),
        (1, lambda: one(is_name, lambda token: token + rng.choice(SUFFIXES))),
    ]
    rng.choices([way for _, way in ways], [weight for weight, _ in ways])[0]()
    return tokens


def mutant(rng, text, names):
    """Returns a mutated statement, or None if none was found."""
    tokens = TOKEN.findall(text)
    places = [i for i, token in enumerate(tokens) if not token.isspace()]
    if len(places) < 3 or not names:
        return None
    found = "".join(altered(rng, tokens, rng.choice(places), names))
    return None if found == text or SPARED.search(found) else found


def mutate(case, seed, count):
    """Puts up to `count` mutants behind each statement of the case that reads or writes rows."""
    rng = random.Random(f"{seed} {case.name}")
    names = sorted({token for step in case.steps for token in TOKEN.findall(step.sent) if is_name(token) and len(token) < 20})
    steps = []
    for step in case.steps:
        steps.append(step)
        is_spared = SPARED.search(step.sent) or DDL.match(step.sent) or len(step.sent) > LENGTH_MAX
        if is_spared or any(name in step.directives for name in UNSTEADY):
            continue
        directives = {k: v for k, v in step.directives.items() if k not in ("params", "named", "values", "named_values", "times")}
        if "?" in step.sent or len(directives) < len(step.directives):
            directives["prepare"] = ""
        for _ in range(count):
            found = mutant(rng, step.sent, names)
            if found:
                steps.append(Step(found, step.line, directives))
    case.steps = steps
    return case
