import pathlib
import unittest

import prose
from comments import of_python, of_rust


def wrong(text, suffix=".rs"):
    return [why.partition(":")[0] for _, why in prose.in_source(text, suffix)]


class Comments(unittest.TestCase):
    def test_first_word_names_the_thing(self):
        for text in ["What is left.", "Of a new store.", "The same, as it comes.", "It is swept.", "How far the log is."]:
            self.assertEqual(len(wrong(f"/// {text}\nstruct A;")), 1, text)
        for text in ["The tablet's log.", "Bytes of the log.", "`None` if there is no log.", "Whatever the order is, the result is equal."]:
            self.assertEqual(wrong(f"/// {text}\nstruct A;"), [], text)

    def test_each_paragraph_is_looked_at(self):
        text = "/// Returns the log.\n///\n/// # Errors\n/// Those of the store.\nfn log() {}"
        self.assertEqual(wrong(text), ["begins with 'Those'"])

    def test_comment_of_a_function_begins_with_a_verb(self):
        self.assertEqual(wrong("/// Returns the log.\n#[inline]\npub(crate) async fn log() {}"), [])
        self.assertEqual(wrong("/// The log.\n#[inline]\npub(crate) async fn log() {}"), ["begins with 'The'"])
        self.assertEqual(wrong("/// A log is kept.\n#[test]\nfn log_is_kept() {}"), [])
        self.assertEqual(wrong('def log():\n    """The log."""\n', ".py"), ["begins with 'The'"])

    def test_sentences_are_short(self):
        self.assertEqual(wrong("// " + "word " * 31), ["a sentence of 31 words"])
        self.assertEqual(wrong("// " + "word " * 30 + "\n// end."), ["a sentence of 31 words"])
        self.assertEqual(wrong("// " + "word " * 20 + "end. " + "word " * 20), [])

    def test_words_of_this_field_are_used(self):
        self.assertEqual(wrong("/// The node that is asked.\nstruct A;"), ["'asked'"])
        self.assertEqual(wrong("/// The lock that is let go.\nstruct A;"), ["'let go'"])
        self.assertEqual(wrong("/// The name `asked` of the column.\nstruct A;"), [])
        self.assertEqual([line for line, _ in prose.in_document("fine\nthe past\n```\nthe past\n```")], [2])

    def test_examples_and_strings_are_no_comments(self):
        self.assertEqual(wrong("/// The log.\n///\n/// ```\n/// what nobody told\n/// ```\nstruct A;"), [])
        self.assertEqual(of_rust('let text = r#"\n// What\n"#;'), [])
        self.assertEqual(of_python('text = """\n# What\n"""\n'), [])

    def test_lines_of_comments_are_counted(self):
        comments = of_rust("//! One.\n\nfn a() {\n    // Two,\n    // three.\n}")
        self.assertEqual([(c.line, c.end, c.lines, c.kind) for c in comments], [(1, 1, ["One."], "inner"), (4, 5, ["Two,", "three."], "code")])
        comments = of_python('"""One."""\n\nX = 1\n#: Two.\nY = 2\n')
        self.assertEqual([(c.line, c.lines, c.kind) for c in comments], [(1, ["One."], "inner"), (4, ["Two."], "code")])


class Errors(unittest.TestCase):
    def test_error_names_a_value_or_a_remedy(self):
        self.assertEqual(wrong('fn a() { bail!("neither readers nor writers"); }'), ["an error without a value or a remedy"])
        self.assertEqual(wrong('fn a() { bail!("no {kind} is there"); }'), [])
        self.assertEqual(wrong('fn a() { bail!("no readers and no writers: give --readers"); }'), [])


class Texts(unittest.TestCase):
    def test_words_of_this_field_are_used_in_texts(self):
        for literal in ['"the node is not told of {it}"', 'r#"what "we" are asked for"#', '"the past\n is gone"', '"tablets are let \\\n    go now"']:
            self.assertEqual(len(prose.in_texts(f"fn a() {{\n    warn!({literal});\n}}")), 1, literal)
        self.assertEqual([line for line, _ in prose.in_texts('// "He said\nfn a<\'a>() { [\'"\', b\'"\']; bail!("nobody has it") }')], [2])

    def test_names_comments_and_words_of_cassandra_are_left_out(self):
        for source in ['"nobody"', '"the rate: {told}"', 'fields["told"]', '// asks "who asks whom"', '"too far in the past can cause"',
                       '#[cfg(test)]\nmod tests {\n"we are told so"']:
            self.assertEqual(prose.in_texts(source), [], source)

    def test_files_of_tests_are_known(self):
        for name, tests in [("crates/a/src/log.rs", False), ("crates/a/src/log_tests.rs", True), ("crates/a/tests/it/main.rs", True)]:
            self.assertEqual(prose.is_test(pathlib.PurePath(name)), tests, name)


class Commits(unittest.TestCase):
    def test_subject_is_an_area_and_an_effect(self):
        for subject in ["log: fence a closed log before replay", "index, schema: keep trailing nulls", "helenus-tablet: x"]:
            self.assertEqual(prose.in_subject(subject), [], subject)
        for subject in ["Fence a closed log", "log: " + "x" * 70, "Log: fence"]:
            self.assertEqual(len(prose.in_subject(subject)), 1, subject)


if __name__ == "__main__":
    unittest.main()
