"""Differences between the answers of two servers (see `answers.of`)."""

# Times of expiry are computed from a TTL in whole seconds, so that they differ by a second or two.
ENDS_TOLERANCE_S = 3


def differences(expected, found):
    """Returns a line for each difference."""
    lines = [f"{table}: the table is missing" for table in expected if table not in found]
    for table, rows in expected.items():
        lines += table_differences(table, rows, found.get(table, []))
    return lines


def table_differences(table, expected, found):
    """Returns the differences of a table's rows, which both servers return in the same order."""
    if len(expected) != len(found):
        return [f"{table}: {len(expected)} rows are expected, {len(found)} were found"]
    lines = []
    for number, (left, right) in enumerate(zip(expected, found)):
        for part in left:
            for name, value in left[part].items():
                other = right.get(part, {}).get(name)
                if not is_equal(part, value, other):
                    lines.append(f"{table}: row {number} {left['values']}: {part} of {name}: {value} is expected, {other} was found"[:2000])
    return lines


def is_equal(part, left, right):
    if part != "ends_s" or left is None or right is None:
        return left == right
    return abs(left - right) <= ENDS_TOLERANCE_S
