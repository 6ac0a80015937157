#!/usr/bin/env python3
"""The structure check finds what it is there for, in small crates made for it."""

import pathlib
import tempfile
import unittest

import stopwatches
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

    def test_path_attribute_module_stands_at_declaration(self):
        self.assertEqual('', self.checked({
            'one/src/lib.rs': 'mod a;\nmod b;\n',
            'one/src/a.rs': '#[path = "a_parts.rs"]\nmod parts;\npub struct A;\nuse parts::P;\n',
            'one/src/a_parts.rs': 'use super::A;\npub struct P;\n',
            'one/src/b.rs': ''}))


class StopwatchTest(unittest.TestCase):
    def python(self, *lines):
        return [finding.text for finding in stopwatches.in_python('\n'.join(lines))]

    def rust(self, *lines):
        return [finding.text for finding in stopwatches.in_rust('\n'.join(lines))]

    def test_elapsed_times_are_found(self):
        self.assertEqual(['time.monotonic() - began < 5'], self.python('began = time.monotonic()', 'assert time.monotonic() - began < 5'))
        self.assertEqual(['took <= MOST'], self.python('MOST = 2', 'began = perf_counter()', 'took = perf_counter() - began', 'assert took <= MOST'))
        self.assertEqual(['3 > slowest'], self.python(
            'def rows():', '    began = time.time()', '    return time.time() - began',
            'slowest = 0', 'slowest = max(slowest, rows())', 'assert 3 > slowest'))

    def test_a_bound_that_is_passed_to_a_function_is_found(self):
        self.assertEqual(['took < most'], self.python(
            'def check(most):', '    took = time.monotonic() - began', '    assert took < most', 'began = time.monotonic()', 'check(2)'))

    def test_percentiles_and_memory_are_found(self):
        self.assertEqual(["figures['p99'] < 20"], self.python("assert figures['p99'] < 20"))
        self.assertEqual(["read['p99_us'] < 3000000.0"], self.python("assert read['p99_us'] < 3e6"))
        self.assertEqual(["memory(node)['VmHWM'] - before < 128 * MIB"], self.python("assert memory(node)['VmHWM'] - before < 128 * MIB"))
        self.assertEqual(['grown < 9'], self.python("grown = metrics()['process_resident_memory_bytes'] - before", 'assert grown < 9'))

    def test_limits_lower_bounds_and_controls_are_allowed(self):
        self.assertEqual([], self.python('began = time.monotonic()', 'assert time.monotonic() - began < 20'))
        self.assertEqual([], self.python('began = time.monotonic()', 'assert time.monotonic() - began > 0.8'))
        self.assertEqual([], self.python('took = time.time() - began', 'rest = time.time() - began', 'assert took < 2 * rest'))
        self.assertEqual([], self.python('assert load.worst_ms < 20_000'))
        self.assertEqual([], self.python("assert read['p99_us'] < 0.5 * read['max_us']"))
        self.assertEqual([], self.python('assert served < 10'))

    def test_short_waits_are_found_unless_they_are_to_be_over(self):
        self.assertEqual(1, len(self.python('helenus.wait_until(condition, 5, "rows")')))
        self.assertEqual(1, len(self.python('helenus.wait_until(condition, timeout_s=5)')))
        self.assertEqual(1, len(self.python('future.result(timeout=3)')))
        self.assertEqual([], self.python('helenus.wait_until(condition, 30)', 'helenus.wait_until(condition)'))
        self.assertEqual([], self.python('with pytest.raises(TimeoutError):', '    helenus.wait_until(condition, 3)'))

    def test_elapsed_times_in_rust_are_found(self):
        self.assertEqual(['began.elapsed() < Duration::from_secs(2)'], self.rust(
            'fn f() {', 'let began = Instant::now();', 'assert!(began.elapsed() < Duration::from_secs(2), "{:?}", began.elapsed());', '}'))
        self.assertEqual(['took < LIMIT'], self.rust(
            'const LIMIT: Duration = Duration::from_millis(200);', 'fn f() {', 'let took = began.elapsed();', 'assert!(x && took < LIMIT);', '}'))
        self.assertEqual(['Instant::now() < until'], self.rust(
            'fn f() {', 'let until = Instant::now() + Duration::from_secs(5);', 'while x { assert!(Instant::now() < until, "no"); }', '}'))
        self.assertEqual(1, len(self.rust('fn f() { timeout(Duration::from_secs(10), work()).await.unwrap(); }')))

    def test_limits_and_simulated_time_in_rust_are_allowed(self):
        self.assertEqual([], self.rust('fn f() { assert!(began.elapsed() < Duration::from_secs(20)); }'))
        self.assertEqual([], self.rust('fn f() { assert!(began.elapsed() > Duration::from_secs(1)); }'))
        self.assertEqual([], self.rust('fn f() { assert!(timeout(Duration::from_millis(300), work()).await.is_err()); }'))
        self.assertEqual([], self.rust('#[tokio::test(start_paused = true)]', 'async fn f() { assert!(began.elapsed() < Duration::from_secs(2)); }'))

    def test_exceptions_need_a_reason_and_a_finding(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / 'tests').mkdir()
            (root / 'tests' / 'test_a.py').write_text('began = time.time()\nassert time.time() - began < 1\n')
            line = 'tests/test_a.py: time.time() - began < 1'
            self.assertIn('tests/test_a.py:2: a time is compared with a constant', stopwatches.check(root, [])[0])
            self.assertEqual([], stopwatches.check(root, stopwatches.read_exceptions(f'# Why\n{line} # It is the clock that is tested.\n')))
            with self.assertRaises(ValueError):
                stopwatches.read_exceptions(line)
            (root / 'tests' / 'test_a.py').write_text('')
            self.assertIn('not needed any more', stopwatches.check(root, [('tests/test_a.py', 'time.time() - began < 1')])[0])


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
