"""An assertion that is not allowed."""

# Seconds from which on an upper bound is a time limit.
LIMIT_S = 20


class Finding:
    """One assertion that is not allowed."""

    def __init__(self, line, text, why):
        self.line, self.text, self.why = line, text, why
