"""The modules of a Rust crate and what each of them refers to, read from its source text alone."""

import pathlib
import re
from typing import NamedTuple

NOT_CODE = re.compile(
    r'//[^\n]*'
    r'|/\*.*?\*/'
    r'|\bb?r(?P<hashes>#*)".*?"(?P=hashes)'
    r'|\bb?"(?:\\.|[^"\\])*"'
    r'|"(?:\\.|[^"\\])*"'
    r"|b?'(?:\\(?:u\{[^}]*\}|x..|.)|[^'\\\n])'",
    re.DOTALL)
TEST_ONLY = re.compile(r'#\[cfg\((?:test|all\(test\b[^\]]*)\)\]')
ATTRIBUTE = re.compile(r'\s*#\[[^\]]*\]')
VISIBILITY = re.compile(r'\bpub\s*\([^)]*\)')
USE = re.compile(r'\buse\s+([^;]+);')
INLINE_MODULE = re.compile(r'\bmod\s+(\w+)\s*\{')
PATH = re.compile(r'(?<![\w:])\w+(?:\s*::\s*\w+)+')
NAME = re.compile(r'\b[A-Za-z_]\w*\b')
DEFINITION = re.compile(r'\b(?:fn|struct|enum|trait|type|const|static|union|macro_rules!)\s+(\w+)')
CRATE = re.compile(r'\bhelenus_\w+')
FILE_OF_MODULE = re.compile(r'#\[path\s*=\s*"([^"]+)"\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)')


class Reference(NamedTuple):
    """A place that names an item of another module."""
    source: tuple
    target: tuple
    file: pathlib.Path
    line: int
    text: str


def blank(match):
    return re.sub(r'[^\n]', ' ', match.group(0))


def end_of_item(text, start):
    """Returns the end of the item that begins at `start`: after its semicolon, or after its braces."""
    depth = 0
    for place in range(start, len(text)):
        if text[place] == ';' and depth == 0:
            return place + 1
        if text[place] in '{([':
            depth += 1
        elif text[place] in '})]':
            depth -= 1
            if depth == 0 and text[place] == '}':
                return place + 1
    return len(text)


def code_of(text):
    """Returns the text without comments, literals and code for tests, with the same lines. Also returns the names of modules for tests."""
    text = NOT_CODE.sub(blank, text)
    test_modules = set()
    while match := TEST_ONLY.search(text):
        start = match.end()
        while attribute := ATTRIBUTE.match(text, start):
            start = attribute.end()
        end = end_of_item(text, start)
        if module := re.match(r'\s*(?:pub\s*(?:\([^)]*\)\s*)?)?mod\s+(\w+)', text[start:end]):
            test_modules.add(module.group(1))
        text = text[:match.start()] + re.sub(r'[^\n]', ' ', text[match.start():end]) + text[end:]
    return VISIBILITY.sub(blank, text), test_modules


def use_tree(text):
    """Returns the paths of a `use` tree with their local names: `a::{b, c as d}` gives (a b) as b and (a c) as d."""
    text = text.strip().removeprefix('::')
    if '{' in text:
        head, _, rest = text.partition('{')
        prefix = tuple(part.strip() for part in head.split('::') if part.strip())
        found, depth, start = [], 0, 0
        body = rest[:rest.rindex('}')] + ','
        for place, character in enumerate(body):
            depth += (character == '{') - (character == '}')
            if character == ',' and depth == 0:
                if part := body[start:place].strip():
                    found += [(prefix + path, name) for path, name in use_tree(part)]
                start = place + 1
        return [(path[:-1], path[-2]) if path[-1] == 'self' and len(path) > 1 and name == 'self' else
                ((path[:-1] if path[-1] == 'self' and len(path) > 1 else path), name) for path, name in found]
    path, _, name = text.partition(' as ')
    path = tuple(part.strip() for part in path.split('::'))
    return [(path, name.strip() or path[-1])]


class Module:
    """One module: its file, its code without inline modules and `use` declarations, and the names that it knows."""

    def __init__(self, path, file, code, first=0):
        self.path = path
        self.file = file
        self.code = code
        self.first = first
        self.names = {}
        self.globs = []
        self.uses = []
        self.defined = set()

    def read(self):
        for match in USE.finditer(self.code):
            line = self.line(match.start())
            for path, name in use_tree(match.group(1)):
                self.uses.append((path, line))
                if name == '*':
                    self.globs.append(path[:-1])
                elif name != '_':
                    self.names[name] = path
        self.code = USE.sub(blank, self.code)
        self.defined = {match.group(1) for match in DEFINITION.finditer(self.code)}

    def line(self, place):
        return self.code.count('\n', 0, place) + 1


class Crate:
    """The modules of the crate in that folder. A module is named by its path from the root, which is ()."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.name = self.folder.name
        self.modules = {}
        self.crates = {}
        source = self.folder / 'src'
        # A folder's own module comes before its children, so that modules for tests are known when their files are met.
        files = sorted(source.rglob('*.rs'), key=lambda file: (len(file.parts), file.name not in ('lib.rs', 'main.rs', 'mod.rs')))
        skipped, elsewhere = set(), {}
        for file in files:
            parts = file.relative_to(source).with_suffix('').parts
            path = parts[:-1] if parts[-1] in ('mod', 'lib', 'main') else parts
            for other, name in FILE_OF_MODULE.findall(file.read_text()):
                elsewhere[file.parent / other] = path + (name,)
        for file in files:
            parts = file.relative_to(source).with_suffix('').parts
            path = elsewhere.get(file) or (parts[:-1] if parts[-1] in ('mod', 'lib', 'main') else parts)
            if file.stem.endswith('_tests') or any(path[:length] in skipped for length in range(1, len(path) + 1)):
                continue
            code, tests = code_of(file.read_text())
            skipped |= {path + (name,) for name in tests}
            self.note_crates(file, code)
            self.add(path, file, code)
        for module in self.modules.values():
            module.read()

    def note_crates(self, file, code):
        for match in CRATE.finditer(code):
            self.crates.setdefault(match.group(0).replace('_', '-'), (file, code.count('\n', 0, match.start()) + 1))

    def add(self, path, file, code):
        while match := INLINE_MODULE.search(code):
            end = end_of_item(code, match.start())
            inner = re.sub(r'[^\n]', ' ', code[:match.end()]) + code[match.end():end - 1]
            self.add(path + (match.group(1),), file, inner)
            code = code[:match.start()] + re.sub(r'[^\n]', ' ', code[match.start():end]) + code[end:]
        if path in self.modules:
            self.modules[path].code += code
        else:
            self.modules[path] = Module(path, file, code)

    def resolve(self, module, path, seen=frozenset()):
        """Returns the module that defines the path, with the name in that module (None for the module itself). `None` if the path is of
        another crate.
        """
        if (module, path) in seen:
            return None
        seen = seen | {(module, path)}
        first, rest = path[0], path[1:]
        if first in ('crate', '$crate'):
            return self.walk((), rest, seen)
        if first == 'self':
            return self.walk(module, rest, seen)
        if first == 'super':
            return self.resolve(module[:-1], ('self',) + rest if rest[:1] != ('super',) else rest, seen) if module else None
        return self.walk(module, path, seen, only_known=True)

    def walk(self, module, path, seen, only_known=False):
        for place, name in enumerate(path):
            if module + (name,) in self.modules:
                module = module + (name,)
                only_known = False
                continue
            here = self.modules.get(module)
            if here is None:
                return None
            found = None
            if name in here.names and here.names[name] != (name,):
                found = self.resolve(module, here.names[name], seen)
                if found is None:
                    return None
            elif name not in here.defined:
                found = self.through_globs(here, name, seen)
                if found is None and only_known:
                    return None
            if found is None:
                return module, name
            if found[1] is not None:
                return found
            module, only_known = found[0], False
        return module, None

    def through_globs(self, here, name, seen):
        for path in here.globs:
            target = self.resolve(here.path, path, seen)
            if target is None or target[1] is not None or target[0] not in self.modules:
                continue
            other = self.modules[target[0]]
            if name in other.defined or name in other.names or target[0] + (name,) in self.modules:
                return self.resolve(target[0], ('self', name), seen)
        return None

    def references(self):
        """Yields all references of modules to others."""
        for module in self.modules.values():
            for path, line in module.uses:
                yield from self.reference(module, path[:-1] if path[-1] == '*' else path, line)
            for match in PATH.finditer(module.code):
                path = tuple(part.strip() for part in match.group(0).split('::'))
                yield from self.reference(module, path, module.line(match.start()))
            if module.globs:
                for name in set(NAME.findall(module.code)) - module.defined - set(module.names):
                    if self.through_globs(module, name, frozenset()):
                        place = re.search(rf'\b{name}\b', module.code).start()
                        yield from self.reference(module, (name,), module.line(place))

    def reference(self, module, path, line):
        target = self.resolve(module.path, path) if path else None
        if target is not None and target[0] != module.path:
            yield Reference(module.path, target[0], module.file, line, '::'.join(path))
