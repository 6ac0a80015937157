#!/usr/bin/env python3
"""The structure check finds what it is there for, in small crates made for it."""

import pathlib
import tempfile
import unittest

from check import Table, check
from modules import code_of, use_tree

TABLE = 'crates: one two\n'


class CheckTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def checked(self, files, table=TABLE):
        for name, text in files.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        folders = sorted({self.root / pathlib.Path(name).parts[0] for name in files})
        return '\n'.join(check(folders, Table(table)))

    def test_a_crate_without_circles_passes(self):
        self.assertEqual('', self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': 'pub struct A;\n',
            'one/src/b.rs': 'use crate::a::A;\n'}))

    def test_a_circle_is_found_with_a_place_on_each_edge(self):
        found = self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': '\npub fn a() { super::b::b() }\n',
            'one/src/b.rs': 'use crate::{\n    a::a,\n};\npub fn b() { a() }\n'})
        self.assertIn('one: a circle of 2 in the crate', found)
        self.assertRegex(found, r'a -> b .*one/src/a\.rs:2: super::b::b')
        self.assertRegex(found, r'b -> a .*one/src/b\.rs:1: crate::a::a')

    def test_a_circle_among_the_children_of_a_folder_is_found(self):
        found = self.checked({
            'one/src/lib.rs': 'mod room;\n',
            'one/src/room/mod.rs': 'mod a;\nmod b;\npub use a::A;\n',
            'one/src/room/a.rs': 'use super::b;\npub struct A;\nfn a() { b::b() }\n',
            'one/src/room/b.rs': 'use super::A;\npub fn b() {}\n'})
        self.assertIn('one: a circle of 2 in room', found)

    def test_what_the_folder_itself_defines_is_everybodys(self):
        self.assertEqual('', self.checked({
            'one/src/lib.rs': 'mod room;\n',
            'one/src/room/mod.rs': 'mod a;\npub struct Ours;\nfn f() { a::a() }\n',
            'one/src/room/a.rs': 'use super::Ours;\npub fn a() {}\n'}))

    def test_comments_literals_and_tests_do_not_count(self):
        self.assertEqual('', self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': '// crate::b::b\nfn a() { "crate::b::b"; \'"\'; }\n#[cfg(test)]\nmod tests { use crate::b::b; }\n'
                            '#[cfg(test)]\nmod more_tests;\n',
            'one/src/a/more_tests.rs': 'use crate::b::b;\n',
            'one/src/b.rs': 'use crate::a;\npub fn b() {}\n',
            'one/src/b_tests.rs': 'use crate::a;\n'}))

    def test_a_floor_must_not_name_one_above_it(self):
        files = {
            'one/src/lib.rs': 'mod high;\nmod low;\n',
            'one/src/high.rs': 'pub struct High;\n',
            'one/src/low.rs': 'use crate::high::High;\n'}
        self.assertIn('low stands below high', self.checked(files, TABLE + 'floors one: low high\n'))
        self.assertEqual('', self.checked(files, TABLE + 'floors one: high low\n'))

    def test_a_folder_may_stand_on_several_floors(self):
        files = {
            'one/src/lib.rs': 'mod middle;\nmod room;\n',
            'one/src/room/mod.rs': 'pub mod high;\npub mod low;\n',
            'one/src/room/high.rs': 'use crate::middle::Middle;\nuse super::low::Low;\n',
            'one/src/room/low.rs': 'pub struct Low;\n',
            'one/src/middle.rs': 'use crate::room::low::Low;\npub struct Middle;\n'}
        self.assertIn('a circle of 2', self.checked(files))
        self.assertEqual('', self.checked(files, TABLE + 'floors one: room::low middle room::high\n'))
        self.assertIn('room::low stands below middle', self.checked({
            **files, 'one/src/room/low.rs': 'use crate::middle::Middle;\npub struct Low;\n'},
            TABLE + 'floors one: room::low middle room::high\n'))

    def test_a_crate_must_not_use_one_above_it(self):
        files = {'helenus-a/src/lib.rs': 'use helenus_b::B;\n', 'helenus-b/src/lib.rs': 'pub struct B;\n'}
        self.assertIn('helenus-a must not use helenus-b', self.checked(files, 'crates: helenus-a helenus-b\n'))
        self.assertEqual('', self.checked(files, 'crates: helenus-b helenus-a\n'))

    def test_known_circles_pass_and_can_only_shrink(self):
        files = {
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': 'use crate::b::B;\npub struct A;\n',
            'one/src/b.rs': 'use crate::a::A;\npub struct B;\n'}
        self.assertEqual('', self.checked(files, TABLE + 'circle one: a b\n'))
        self.assertIn('is now:\n  circle one: a b', self.checked(files, TABLE + 'circle one: a b c\n'))
        files['one/src/a.rs'] = 'pub struct A;\n'
        self.assertIn('is no more', self.checked(files, TABLE + 'circle one: a b\n'))

    def test_a_known_circle_must_not_grow(self):
        found = self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\nmod c;\n',
            'one/src/a.rs': 'use crate::b::B;\npub struct A;\n',
            'one/src/b.rs': 'use crate::c::C;\npub struct B;\n',
            'one/src/c.rs': 'use crate::a::A;\nuse crate::b::B;\npub struct C;\n'}, TABLE + 'circle one: b c\n')
        self.assertIn('a circle of 3, grown from 2 in the crate', found)
        self.assertNotIn('is no more', found)

    def test_a_module_whose_file_is_named_by_an_attribute_stands_where_it_is_declared(self):
        self.assertEqual('', self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': '#[path = "a_parts.rs"]\nmod parts;\npub struct A;\nuse parts::P;\n',
            'one/src/a_parts.rs': 'use super::A;\npub struct P;\n',
            'one/src/b.rs': ''}))


class TextTest(unittest.TestCase):
    def test_use_trees(self):
        self.assertEqual([(('a', 'b'), 'b'), (('a', 'c', 'd'), 'e'), (('a',), 'a')],
                         use_tree('a::{b, c::{d as e}, self}'))

    def test_lines_stay_where_they_are(self):
        code, tests = code_of('/* a\nb */ fn f() { r#"\n"# }\n#[cfg(test)]\nmod x_tests;\nfn g() {}\n')
        self.assertEqual({'x_tests'}, tests)
        self.assertEqual(6, code[:code.index('fn g')].count('\n') + 1)


if __name__ == '__main__':
    unittest.main()
