#!/usr/bin/env -S python3 -B
"""Tests check_english: its reports for a file, and its exceptions."""

import pathlib
import re
import subprocess
import tempfile
import unittest

import english

TOOL = pathlib.Path(__file__).parent / "check_english"
LONG = "Word" + " word" * 25 + "."


def found(kind, text):
    return [(offence.line, offence.rule)
            for offence in english.offences(kind, text)]


class OffencesTest(unittest.TestCase):

    def test_each_opening_is_reported_where_a_comment_begins(self):
        for word in ("What", "Who", "Whether", "Which", "That", "Those",
                     "It", "Its", "So", "It's", "whether"):
            self.assertEqual(found("cc", f"int a;  // {word} a b.\n"),
                             [(1, "opening")], word)
        for word in "Whatever", "Itself", "Some", "This", "A", "So-called":
            self.assertEqual(found("cc", f"// {word} a b.\n"), [], word)

    def test_a_sentence_may_begin_within_a_line(self):
        self.assertEqual(found("cc", "// Sends a. It blocks.\n"),
                         [(1, "opening")])
        self.assertEqual(found("cc", "// Sends (\"a.\") It blocks.\n"),
                         [(1, "opening")])

    def test_a_comment_of_several_lines_is_one_paragraph(self):
        self.assertEqual(found("cc", "// Sends a,\n// that is b, and\n"
                               "// c. It blocks.\n"), [(3, "opening")])
        self.assertEqual(found("cc", "// Sends a.\n// It blocks.\n"),
                         [(2, "opening")])
        self.assertEqual(found("cc", "int a;  // the first\n"
                               "        // that was sent\n"), [])

    def test_another_comment_is_another_paragraph(self):
        for gap in "\n", "//\n", "int a;\n":
            self.assertEqual(
                found("cc", f"// Sends a\n{gap}// that is b\n"),
                [(3, "opening")])
        self.assertEqual(found("cc", "int a;  // the first\n"
                               "int b;  // that was sent\n"),
                         [(2, "opening")])

    def test_a_list_item_is_another_paragraph(self):
        self.assertEqual(found("cc", "// Sends\n// - what is a\n// 2. b\n"),
                         [(2, "opening")])

    def test_abbreviations_and_numbers_end_no_sentence(self):
        self.assertEqual(found("cc", "// Sends, i.e. It blocks; 1.5 x.\n"),
                         [])

    def test_a_block_comment_is_read_without_its_marks(self):
        self.assertEqual(found("c", "/* Sends a.\n * It blocks. */\n"),
                         [(2, "opening")])

    def test_texts_of_c_are_no_comments(self):
        self.assertEqual(found("cc", 'a("// What");\nb(R"x(// It "\n)x");\n'
                               "c('\"'); d = 1'000; // Its\n"),
                         [(4, "opening")])

    def test_comments_and_docstrings_of_python_are_read(self):
        self.assertEqual(
            found("py", '#!/usr/bin/env python3\n"""What a is.\n\nIt is.\n"""'
                  "\n# Which b\na = '# That'\nb = c(\n    \"\"\"\nSo\n\"\"\")"
                  "\ndef d():\n    '''Whether e.'''\n"),
            [(2, "opening"), (4, "opening"), (6, "opening"),
             (13, "opening")])

    def test_comments_of_shell_are_read(self):
        self.assertEqual(
            found("sh", "#!/bin/sh\na=${b#It}  # Its c\n"
                  "cat <<'END'\n# What d\nEND\n# So e\n"),
            [(2, "opening"), (6, "opening")])

    def test_lines_for_other_tools_are_skipped(self):
        self.assertEqual(found("cc", "int a;  // NOLINT(what)\n"), [])
        self.assertEqual(found("sh", "# shellcheck disable=SC1\n# So a\n"),
                         [(2, "opening")])

    def test_long_sentences_are_reported_in_documents_only(self):
        self.assertEqual(found("md", f"A b.\n{LONG}\n"), [(2, "long")])
        self.assertEqual(found("md", LONG.replace(" word", "", 1)), [])
        self.assertEqual(found("cc", f"// {LONG}\n"), [])

    def test_a_sentence_of_a_document_ends_with_its_paragraph(self):
        half = " ".join(["word"] * 20)
        for gap in "\n\n", "\n- ", "\n1. ", "\n\n# ", ". ":
            self.assertEqual(found("md", half + gap + half.title()), [])
        self.assertEqual(found("md", f"| {half} | {half} |\n"), [])
        self.assertEqual(found("md", f"- {half}\n  {half}\n"), [(1, "long")])

    def test_code_and_addresses_count_little(self):
        self.assertEqual(found("md", f"```\n{LONG}\n```\n"), [])
        self.assertEqual(found("md", f"A `{LONG}` b.\n"), [])
        self.assertEqual(found("md", "[a](" + "b/ c" * 26 + ")."), [])

    def test_words_are_reported_in_comments_and_documents(self):
        for text in ("a mend", "is dear to", "by turns", "such as do",
                     "be it a", "without more ado", "one behind the other",
                     "has it that", "beside a", "what stands here"):
            self.assertEqual(found("cc", f"// A {text} b.\n"), [(1, "word")],
                             text)
            self.assertEqual(found("md", f"A {text} b.\n"), [(1, "word")],
                             text)
        for text in ("recommend", "such as a", "may be it", "besides",
                     "stands for a", "`mend`", "\"dear\""):
            self.assertEqual(found("md", f"A {text} b.\n"), [], text)

    def test_a_file_is_of_the_language_of_its_name_or_first_line(self):
        for name, first, expected in (
                ("a/b.h", "", "h"), ("a/BUILD", "", "BUILD"),
                ("a.md", "", "md"), ("tools/a", "#!/usr/bin/env bash", "sh"),
                ("tools/a", "#!/usr/bin/python3 -B", "py"),
                ("a.txt", "", None), ("a", "b", None)):
            self.assertEqual(english.language(name, first), expected)


class ToolTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        (self.root / "tools").mkdir()
        self.exceptions = self.root / "tools/english_exceptions"

    def check(self, text, exceptions="", *flags):
        """Returns the output for a tree of one file, and the exit code."""
        (self.root / "a.cc").write_text(text)
        self.exceptions.write_text(exceptions)
        run = subprocess.run([TOOL, *flags, self.root], text=True,
                             stdout=subprocess.PIPE, check=False)
        return run.stdout, run.returncode

    def test_an_offence_fails(self):
        self.assertEqual(self.check("// What a is.\n"),
                         ("a.cc:1: opening: What a is.\n", 1))

    def test_as_many_as_excepted_pass(self):
        self.assertEqual(self.check("// What a is.\n", "a.cc opening 1\n"),
                         ("", 0))

    def test_more_than_excepted_fail(self):
        said, code = self.check("// What a.\n\n// It.\n", "a.cc opening 1\n")
        self.assertEqual(said.splitlines()[:2], ["a.cc:1: opening: What a.",
                                                 "a.cc:3: opening: It."])
        self.assertEqual(code, 1)

    def test_fewer_than_excepted_fail_until_the_list_is_cut(self):
        for rows in "a.cc opening 2\n", "a.cc opening 1\na.cc word 1\n":
            said, code = self.check("// What a.\n", rows)
            self.assertIn("1 counts are too high: run tools/check_english "
                          "--shrink", said)
            self.assertEqual(code, 1)
            self.assertEqual(self.check("// What a.\n", rows, "--shrink"),
                             ("", 0))
            self.assertEqual(self.exceptions.read_text(), "a.cc opening 1\n")

    def test_a_moved_file_takes_its_exceptions_along(self):
        text, rows = "// What a.\n\n// It.\n", "b.cc opening 2\n"
        self.assertEqual(self.check(text, rows)[1], 1)
        self.assertEqual(self.check(text, rows, "--shrink"), ("", 0))
        self.assertEqual(self.exceptions.read_text(), "a.cc opening 2\n")
        self.assertEqual(self.check(text, "b.cc opening 1\n", "--shrink")[1],
                         1)
        self.assertEqual(self.check(text, "b.cc word 2\n", "--shrink")[1], 1)

    def test_no_count_is_raised(self):
        _, code = self.check("// What a.\n\n// It.\n", "a.cc opening 1\n",
                             "--shrink")
        self.assertEqual(code, 1)
        self.assertEqual(self.exceptions.read_text(), "a.cc opening 1\n")

    def test_a_seed_draws_the_same_comments_again(self):
        text = "".join(f"// Sends {i}.\nvoid a{i}();  // b\n" for i in range(300))
        first, code = self.check(text, "", "--sample=7")
        self.assertEqual(code, 0)
        self.assertEqual(first, self.check(text, "", "--sample=7")[0])
        self.assertNotEqual(first, self.check(text, "", "--sample=8")[0])
        drawn = re.findall(r"^a\.cc:\d+\n  // Sends (\d+)\.\n"
                           r"  void a\1\(\);  // b$", first, re.MULTILINE)
        self.assertEqual(len(set(drawn)), 100)

    def test_a_sample_has_no_code(self):
        code = ("#ifndef A_H_  // The guard.\n#include <a>  // Keeps a.\n"
                "/*size=*/7, 8);\n*a = 1;  // Sets a.\n#endif  // A_H_\n")
        self.assertEqual(self.check(code, "", "--sample=1")[0].strip(), "")
        comments = ("/* Sends a. */\n\n/* Sends b.\n *\n * Sends c.\n */\n\n"
                    "// Sends d.\n")
        drawn = self.check(comments, "", "--sample=1")[0]
        self.assertEqual(sorted(re.findall(r"Sends (\w)", drawn)), list("abcd"))

    def test_a_list_of_all_offences_is_no_failure(self):
        self.assertEqual(
            self.check("// What a is.\n", "a.cc opening 1\n", "--list"),
            ("a.cc:1: opening: What a is.\n", 0))


if __name__ == "__main__":
    unittest.main()
