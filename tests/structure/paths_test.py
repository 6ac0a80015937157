#!/usr/bin/env python3
"""Tests of the check of paths, in small repositories that are made for them."""

import pathlib
import tempfile
import unittest

import paths

FILES = {
    "COMPAT.md": "",
    "docs/guide.md": "",
    "tests/run.py": "",
    "bench/results/rows.json": "",
    "crates/one/src/lib.rs": "",
    "crates/one/src/log/frame.rs": "",
    "crates/two/src/tree.rs": "",
}


class PathsTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def checked(self, files):
        for name, text in {**FILES, **files}.items():
            file = self.root / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return paths.check(self.root)

    def test_existing_paths_pass(self):
        self.assertEqual([], self.checked({
            "README.md": "`docs/guide.md`, `bench/results/`, `crates/one/src`, `one/src/log`, `two/src/tree.rs` and `COMPAT.md`"}))

    def test_missing_path_is_reported_with_its_line(self):
        self.assertEqual(["README.md:2: there is no docs/gone.md"], self.checked({"README.md": "x\nsee `docs/gone.md`\n"}))

    def test_missing_folder_of_a_crate_is_reported(self):
        self.assertEqual(["README.md:1: there is no one/src/gone"], self.checked({"README.md": "`one/src/gone`"}))

    def test_leading_folders_may_be_left_out_in_markdown(self):
        self.assertEqual(["README.md:1: there is no log/gone.rs"], self.checked({"README.md": "`log/frame.rs`, `frame.rs`, `log/gone.rs`"}))

    def test_path_is_relative_to_its_file(self):
        self.assertEqual([], self.checked({"docs/more.md": "`guide.md` and `../tests/run.py`"}))

    def test_line_numbers_and_anchors_are_ignored(self):
        self.assertEqual([], self.checked({"README.md": "`tests/run.py:12`, `tests/run.py:12-15`, `docs/guide.md#top`"}))

    def test_globs_must_match(self):
        self.assertEqual(["README.md:1: there is no bench/results/*.csv"],
                         self.checked({"README.md": "`crates/*/src/lib.rs`, `bench/results/*.json`, `bench/results/*.csv`"}))

    def test_placeholders_are_not_checked(self):
        self.assertEqual([], self.checked({"README.md": "`docs/<name>.md`, `crates/…/lib.rs`, `tests/{name}.py`"}))

    def test_other_texts_in_backticks_are_no_paths(self):
        self.assertEqual([], self.checked({
            "README.md": "`cargo test docs/gone.md`, `https://example.org/docs/gone.md`, `/etc/gone.py`, `log/END`, `*.rs`, `.rs`, `a/b`"}))

    def test_fenced_code_is_not_checked(self):
        self.assertEqual([], self.checked({"README.md": "```\n`docs/gone.md`\n```\n"}))

    def test_rust_header_is_checked(self):
        self.assertEqual(["crates/one/src/a.rs:2: there is no docs/gone.md"],
                         self.checked({"crates/one/src/a.rs": "//! Frames of the log (`log/frame.rs`).\n//! See `docs/gone.md`.\n"}))

    def test_other_rust_comments_are_not_checked(self):
        self.assertEqual([], self.checked({"crates/one/src/a.rs": "/// See `docs/gone.md`.\n// `docs/gone.md`\n"}))

    def test_rust_header_finds_short_paths_in_its_crate_only(self):
        self.assertEqual(["crates/one/src/a.rs:1: there is no tree.rs"],
                         self.checked({"crates/one/src/a.rs": "//! `frame.rs`, `tree.rs` and `two/src/tree.rs`\n"}))

    def test_build_output_is_not_searched(self):
        self.assertEqual([], self.checked({"target/doc/a.md": "`docs/gone.md`"}))


if __name__ == "__main__":
    unittest.main()
