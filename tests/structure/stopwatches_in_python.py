"""Assertions in Python that bound a measured time or memory by a constant."""

import ast
import re

from stopwatches_finding import LIMIT_S, Finding

# Functions that read a clock.
CLOCKS = {"monotonic", "perf_counter", "time", "process_time", "monotonic_ns", "perf_counter_ns"}
# Keys of percentiles and of other latencies in a report.
LATENCY_KEY = re.compile(r"p\d+(_\d+)?(_[mu]?s)?|(max|mean|lag|worst|longest|slowest|duration)(_\w+)?_[mu]?s|\w+_seconds|CPU time .*")
MEMORY_KEY = re.compile(r"Vm(RSS|HWM|Size|Peak)|\w*resident_memory\w*|memory at .*")
MEMORY_NAME = re.compile(r"(.*_)?(rss|resident)(_.*)?")
TIME_NAME = re.compile(r"(worst|longest|slowest|took|elapsed|latency)(_\w+)?")
# A percentile whose unit is not known.
BARE_PERCENTILE = re.compile(r"""\[['"]p\d+(_\d+)?['"]\]""")
TIMEOUT_ERRORS = ("TimeoutError",)
UNITS = (("_us", 1e-6), ("_ms", 1e-3), ("_ns", 1e-9))

TIME, MEMORY = "time", "memory"


def in_python(source):
    """Returns the findings in a Python test."""
    return PythonTest(ast.parse(source)).findings()


class PythonTest:
    """A module, and which of its names, attributes and functions hold a measured time or memory."""

    def __init__(self, tree):
        self.tree = tree
        self.measured = {}
        self.clock_names = set()
        self.constants = {}
        for node in tree.body:
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                self.note_constant(node.targets[0], node.value)
        self.parameters = self.constant_parameters()
        # An assignment may use a name that is measured further down.
        for _ in range(5):
            before = len(self.measured), len(self.clock_names)
            self.spread()
            if before == (len(self.measured), len(self.clock_names)):
                break

    def note_constant(self, target, value):
        names, values = ([target], [value])
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            names, values = target.elts, value.elts
        for name, of in zip(names, values):
            number = self.constant(of)
            if isinstance(name, ast.Name) and number is not None:
                self.constants[name.id] = number

    def constant_parameters(self):
        """Returns the smallest constant that this module passes for each parameter of its functions, by function and parameter."""
        found = {}
        functions = {node.name: [of.arg for of in node.args.args if of.arg != "self"]
                     for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Call) and called(node) in functions:
                given = list(zip(functions[called(node)], node.args)) + [(of.arg, of.value) for of in node.keywords]
                for parameter, value in given:
                    if (number := self.constant(value)) is not None:
                        place = called(node), parameter
                        found[place] = min(number, found.get(place, number))
        return found

    def spread(self):
        for node in ast.walk(self.tree):
            if isinstance(node, (ast.Assign, ast.AugAssign, ast.AnnAssign)) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    self.bind(target, node.value)
            elif isinstance(node, (ast.FunctionDef, ast.Lambda)):
                self.bind_function(node)
            elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in ("append", "add"):
                if node.args and (kind := self.kind(node.args[0])):
                    self.mark(node.func.value, kind)

    def bind(self, target, value):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, of in zip(target.elts, value.elts):
                self.bind(one, of)
            return
        if isinstance(value, ast.Lambda):
            value = value.body
        if isinstance(target, ast.Tuple):
            return
        if is_clock(value):
            self.clock_names.add(ast.unparse(target))
        elif kind := self.kind(value):
            self.mark(target, kind)

    def bind_function(self, function):
        if isinstance(function, ast.FunctionDef):
            for node in ast.walk(function):
                if isinstance(node, ast.Return) and node.value is not None and not isinstance(node.value, ast.Tuple):
                    if kind := self.kind(node.value):
                        self.measured[function.name] = kind

    def mark(self, target, kind):
        if isinstance(target, ast.Subscript):
            target = target.value
        if isinstance(target, (ast.Name, ast.Attribute)):
            self.measured[target.id if isinstance(target, ast.Name) else target.attr] = kind

    def kind(self, node):
        """Returns `TIME` or `MEMORY` if the expression has a measured figure."""
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Sub) and (self.has_clock(node.left) or self.has_clock(node.right)):
            return TIME
        if isinstance(node, ast.Name):
            return self.measured.get(node.id) or kind_of_name(node.id)
        if isinstance(node, ast.Attribute):
            return self.measured.get(node.attr) or kind_of_name(node.attr)
        if isinstance(node, ast.Subscript):
            key = node.slice
            if isinstance(key, ast.Constant) and isinstance(key.value, str):
                if LATENCY_KEY.fullmatch(key.value):
                    return TIME
                if MEMORY_KEY.fullmatch(key.value):
                    return MEMORY
            return self.kind(node.value)
        if isinstance(node, ast.Call):
            return self.kind_of_call(node)
        if isinstance(node, (ast.Compare, ast.Constant, ast.Lambda, ast.Dict, ast.JoinedStr)):
            return None
        kinds = [self.kind(child) for child in ast.iter_child_nodes(node) if isinstance(child, (ast.expr, ast.comprehension))]
        return next(filter(None, kinds), None)

    def kind_of_call(self, node):
        name = called(node)
        if name in CLOCKS:
            return None
        if name in ("max", "min", "sum", "sorted", "abs", "round", "int", "float", "list", "median", "mean"):
            return next(filter(None, (self.kind(argument) for argument in node.args)), None)
        if name in self.measured:
            return self.measured[name]
        texts = [argument.value for argument in node.args if isinstance(argument, ast.Constant) and isinstance(argument.value, str)]
        if any(MEMORY_KEY.fullmatch(text) for text in texts):
            return MEMORY
        if isinstance(node.func, ast.Attribute) and name in ("values", "items", "get", "total_seconds"):
            return self.kind(node.func.value)
        return None

    def has_clock(self, node):
        return is_clock(node) or ast.unparse(node) in self.clock_names

    def constant(self, node):
        """Returns the value of an expression of constants. `None` if it is not one."""
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)) and not isinstance(node.value, bool):
            return node.value
        if isinstance(node, ast.Name) and node.id in self.constants:
            return self.constants[node.id]
        if isinstance(node, ast.Name) and node.id.isupper():
            # The value of another module's constant is not known.
            return 0
        if isinstance(node, ast.Attribute) and node.attr.isupper():
            return 0
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            value = self.constant(node.operand)
            return None if value is None else -value
        if isinstance(node, ast.BinOp):
            left, right = self.constant(node.left), self.constant(node.right)
            if left is None or right is None:
                return None
            try:
                return {ast.Add: lambda: left + right, ast.Sub: lambda: left - right, ast.Mult: lambda: left * right,
                        ast.Div: lambda: left / right, ast.LShift: lambda: left << right, ast.Pow: lambda: left ** right}[type(node.op)]()
            except (KeyError, ZeroDivisionError, TypeError):
                return 0
        return None

    def findings(self):
        found = []
        functions = [node for node in ast.walk(self.tree) if isinstance(node, ast.FunctionDef)]
        within = {id(inner): function.name for function in functions for inner in ast.walk(function)}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Assert):
                found += self.in_condition(node.test, within.get(id(node)))
        Waits(self, found).visit(self.tree)
        return sorted(found, key=lambda finding: finding.line)

    def in_condition(self, test, function):
        for node in ast.walk(test):
            if not isinstance(node, ast.Compare):
                continue
            sides = [node.left, *node.comparators]
            for left, operator, right in zip(sides, node.ops, sides[1:]):
                if isinstance(operator, (ast.Gt, ast.GtE)):
                    left, right = right, left
                elif not isinstance(operator, (ast.Lt, ast.LtE)):
                    continue
                bound, kind = self.constant(right), self.kind(left)
                if bound is None and isinstance(right, ast.Name):
                    bound = self.parameters.get((function, right.id))
                if bound is not None and self.is_refused(kind, left, bound):
                    yield Finding(node.lineno, ast.unparse(node), f"a {kind} is compared with a constant")

    def is_refused(self, kind, measured, bound):
        if kind == TIME:
            text = ast.unparse(measured)
            return bound * unit(text) < LIMIT_S or bool(BARE_PERCENTILE.search(text))
        return kind == MEMORY


class Waits(ast.NodeVisitor):
    """Waits of less than `LIMIT_S` that fail the test when they are over."""

    def __init__(self, test, found):
        self.test, self.found = test, found

    def visit_With(self, node):
        raised = [item.context_expr for item in node.items]
        if any(isinstance(of, ast.Call) and called(of) in ("raises", "suppress") and any(name in ast.unparse(of) for name in TIMEOUT_ERRORS) for of in raised):
            return
        self.generic_visit(node)

    def visit_Call(self, node):
        name = called(node)
        limit = None
        if name == "wait_until":
            limit = next((of.value for of in node.keywords if of.arg == "timeout_s"), node.args[1] if len(node.args) > 1 else None)
        elif name == "result":
            limit = next((of.value for of in node.keywords if of.arg == "timeout"), None)
        seconds = None if limit is None else self.test.constant(limit)
        if seconds is not None and 0 < seconds < LIMIT_S:
            self.found.append(Finding(node.lineno, f"{name}(… {ast.unparse(limit)} …)", "the wait is over too soon on a busy machine"))
        self.generic_visit(node)


def is_clock(node):
    return isinstance(node, ast.Call) and called(node) in CLOCKS and not node.args


def kind_of_name(name):
    return MEMORY if MEMORY_NAME.fullmatch(name) else TIME if TIME_NAME.fullmatch(name) else None


def called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def unit(text):
    """Returns the seconds of the unit that the expression's suffix names."""
    return next((seconds for suffix, seconds in UNITS if re.search(rf"{suffix}\b", text)), 1)
