"""Random types, values and tables, with everything that keys and columns of a release of Cassandra may be."""

import features

# Names of columns: usual ones, and those that need quotes.
NAMES = ["v", "value", "w_1", "x", '"Mixed"', '"with space"', '"select"', '"größe"', '"a""b"', "y", "z", "note", "total", "u", "t"]
KEY_SCALARS = [name for name in features.TYPES if name not in ("duration",)]
# A short number of partitions and clusterings, so that much is overwritten and deleted.
FEW, MANY = (2, 5), (12, 30)
VECTOR_SIZE = 3


class Type:
    """A type of CQL. `parts` has the types of elements, fields or components, and `fields` the names of a user type. All uses of a user type share
    both lists, to which fields are added."""

    def __init__(self, kind, name, parts=(), fields=(), is_frozen=True):
        self.kind, self.name, self.parts, self.fields, self.is_frozen = kind, name, parts, fields, is_frozen

    @property
    def has_many_cells(self):
        return self.kind in ("list", "set", "map", "user") and not self.is_frozen

    def literal(self, chance, is_part=False):
        """Returns a random value. A part may not be a function's result, which some releases refuse."""
        return getattr(self, f"_{self.kind}")(chance, is_part)

    def _scalar(self, chance, is_part):
        if not is_part and self.name in features.EMPTY_ALLOWED and chance.random() < 0.03:
            return f"blobAs{self.name.capitalize()}(0x)"
        if chance.random() < 0.5:
            return chance.choice(features.VALUES[self.name])
        return random_scalar(chance, self.name)

    def _list(self, chance, is_part):
        return f"[{', '.join(self._some(chance))}]"

    def _set(self, chance, is_part):
        return f"{{{', '.join(self._some(chance))}}}"

    def _map(self, chance, is_part):
        keys, values = self.parts
        return f"{{{', '.join(f'{keys.literal(chance, True)}: {values.literal(chance, True)}' for _ in range(chance.randrange(4)))}}}"

    def _user(self, chance, is_part):
        given = [(name, part) for name, part in zip(self.fields, self.parts) if chance.random() < 0.7] or [(self.fields[0], self.parts[0])]
        return f"{{{', '.join(f'{name}: {nullable(part, chance)}' for name, part in given)}}}"

    def _tuple(self, chance, is_part):
        return f"({', '.join(nullable(part, chance) for part in self.parts)})"

    def _vector(self, chance, is_part):
        return f"[{', '.join(self.parts[0].literal(chance, True) for _ in range(VECTOR_SIZE))}]"

    def _some(self, chance):
        return [self.parts[0].literal(chance, True) for _ in range(chance.randrange(4))]


def nullable(part, chance):
    return "null" if chance.random() < 0.15 else part.literal(chance, True)


def random_scalar(chance, name):
    """Returns a random value of a type that features.TYPES lists."""
    number = chance.randrange(1000)
    if name in ("ascii", "text"):
        return f"'{chance.choice('abcde') * chance.choice((1, 3, 40))}{number}'"
    if name in ("int", "bigint", "varint"):
        return str(chance.choice((number, -number, number * 1_000_003)))
    if name in ("smallint", "tinyint"):
        return str(number % 256 - 128)
    if name in ("decimal", "double", "float"):
        return f"{number - 500}.{chance.randrange(8) * 125:03}"
    return {
        "blob": lambda: f"0x{chance.randbytes(chance.choice((1, 8, 100))).hex()}", "boolean": lambda: chance.choice(("true", "false")),
        "date": lambda: f"'20{number % 90 + 10}-0{number % 9 + 1}-11'", "duration": lambda: f"{number}d{number}s", "inet": lambda: f"'10.0.{number % 200}.1'",
        "time": lambda: f"'0{number % 10}:11:12.{number:03}'", "timestamp": lambda: str(1_700_000_000_000 + number),
        "timeuuid": lambda: f"5055{number:04}-29bb-11e5-b345-feff819cdc9f", "uuid": lambda: f"00000000-0000-4000-8000-{number:012}",
    }[name]()


def scalar(chance, is_key=False):
    return Type("scalar", chance.choice(KEY_SCALARS if is_key else features.TYPES))


def frozen(kind, words, parts, is_frozen=True):
    return Type(kind, f"frozen<{kind}<{words}>>" if is_frozen else f"{kind}<{words}>", parts, is_frozen=is_frozen)


def composed(chance, release, users, depth, is_key, is_frozen):
    """Returns a random collection, tuple, user type or vector. `depth` bounds the levels below."""
    part = lambda of_key=is_key: any_type(chance, release, users, depth - 1, of_key)
    kinds = ["list", "set", "map"] + ["user"] * bool(users) + (["tuple"] + ["vector"] * (release.has(5, 0) and not is_key)) * is_frozen
    kind = chance.choice(kinds)
    if kind == "user":
        user = chance.choice(users)
        return Type("user", f"frozen<{user.name}>" if is_frozen else user.name, user.parts, user.fields, is_frozen)
    if kind == "tuple":
        parts = [part() for _ in range(chance.randrange(1, 4))]
        return frozen("tuple", ", ".join(each.name for each in parts), parts)
    if kind == "vector":
        inner = Type("scalar", "float") if chance.random() < 0.5 else part()
        return Type("vector", f"vector<{inner.name}, {VECTOR_SIZE}>", [inner])
    parts = [part(True), part()] if kind == "map" else [part(kind == "set" or is_key)]
    return frozen(kind, ", ".join(each.name for each in parts), parts, is_frozen)


def any_type(chance, release, users, depth=2, is_key=False):
    """Returns a random type that can be a part of another one."""
    if depth == 0 or chance.random() < 0.6:
        return scalar(chance, is_key)
    # User types may have fields that keys cannot have.
    return composed(chance, release, [] if is_key else users, depth, is_key, True)


def column_type(chance, release, users):
    """Returns the type of a column that is not in the key."""
    choice = chance.random()
    if choice < 0.45:
        return scalar(chance)
    return composed(chance, release, users, 2, False, is_frozen=choice < 0.65)


def key_type(chance, release):
    return any_type(chance, release, [], 1, is_key=True)


def user_types(chance, release, keyspace):
    """Returns user types. Their names begin with `place`, by which `answers` finds them."""
    found = []
    for number in range(chance.randrange(1, 4)):
        parts = [any_type(chance, release, found, 2) for _ in range(chance.randrange(1, 5))]
        found.append(Type("user", f"place{number}", parts, [f"f{n}" for n in range(len(parts))]))
    return found


class Table:
    """A table with random columns, and the values of its keys. Columns and keys are pairs of a name and a type."""

    def __init__(self, chance, release, name, users):
        self.name, self.release, self.users = name, release, users
        self.is_counter, self.is_wide, self.has_drops = chance.random() < 0.15, chance.random() < 0.15, chance.random() < 0.6
        self.partition = [(f"p{n}", key_type(chance, release)) for n in range(chance.choice((1, 1, 1, 2, 3)))]
        self.clustering = [(f"c{n}", key_type(chance, release)) for n in range(chance.choice((0, 1, 1, 2, 2, 3)) or int(self.is_wide))]
        # Releases before 4.0 take no literals of collections in descending columns.
        self.orders = [chance.choice(("ASC", "DESC")) if kind.kind == "scalar" else "ASC" for _, kind in self.clustering]
        names = chance.sample(NAMES, chance.randrange(2, 9)) if chance.random() < 0.9 else [f"v{n:03}" for n in range(chance.randrange(60, 90))]
        counter = Type("counter", "counter")
        columns = [(name, counter if self.is_counter else column_type(chance, release, users)) for name in names]
        statics = chance.randrange(0, min(3, len(names))) if self.clustering else 0
        self.statics, self.columns = columns[:statics], columns[statics:]
        # Columns that were dropped and may be added again.
        self.dropped = []
        self.options = options(chance, release, self)
        few, many = range(*FEW), range(*(MANY if self.is_wide else FEW))
        self.partitions = [self._partition_key(chance) for _ in range(chance.choice(few) + 1)]
        self.values = [[kind.literal(chance) for _ in range(chance.choice(many) + 1)] for _, kind in self.clustering]

    def _partition_key(self, chance):
        """Returns the values of a partition key. Cassandra refuses the empty key, which only a single column can have."""
        while True:
            values = [kind.literal(chance, True) for _, kind in self.partition]
            if values not in (["0x"], ["''"]):
                return values

    def statement(self, keyspace):
        """Returns CREATE TABLE."""
        columns = [f"{name} {kind.name}" for name, kind in self.partition + self.clustering]
        columns += [f"{name} {kind.name} static" for name, kind in self.statics] + [f"{name} {kind.name}" for name, kind in self.columns]
        key = ", ".join([f"({', '.join(name for name, _ in self.partition)})", *(name for name, _ in self.clustering)])
        order = ", ".join(f"{name} {order}" for (name, _), order in zip(self.clustering, self.orders))
        options = ([f"CLUSTERING ORDER BY ({order})"] if order else []) + self.options
        return f"CREATE TABLE {keyspace}.{self.name} ({', '.join(columns)}, PRIMARY KEY ({key}))" + (f" WITH {' AND '.join(options)}" if options else "")


def options(chance, release, table):
    """Returns random options of a table, as texts."""
    found = []
    if chance.random() < 0.8:
        compression = chance.choice(list(features.compressions(release).values()))
        if "enabled" not in compression and chance.random() < 0.5:
            compression = compression.replace("_kb': 4", f"_kb': {chance.choice((8, 16, 64))}")
        found.append(f"compression = {compression}")
    if chance.random() < 0.2 and not table.is_counter:
        found.append(f"default_time_to_live = {chance.choice((86400, 8640000))}")
    if chance.random() < 0.3:
        found.append(f"gc_grace_seconds = {chance.choice((0, 60, 3600))}")
    strategies = ["SizeTieredCompactionStrategy", "LeveledCompactionStrategy", "TimeWindowCompactionStrategy"] + ["UnifiedCompactionStrategy"] * release.has(5, 0)
    if chance.random() < 0.4:
        found.append(f"compaction = {{'class': '{chance.choice(strategies)}'}}")
    return found
