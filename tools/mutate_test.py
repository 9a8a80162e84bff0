#!/usr/bin/env -S python3 -B
"""Tests mutate: the mutants of a line, and the restored line."""

import importlib.machinery
import importlib.util
import pathlib
import subprocess
import tempfile
import unittest

import mutants

TOOL = pathlib.Path(__file__).parent / "mutate"


def load_tool():
    loader = importlib.machinery.SourceFileLoader("mutate", str(TOOL))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("mutate", loader))
    loader.exec_module(module)
    return module


def after(line, previous=";"):
    return [mutant.after for mutant in mutants.mutants(f"{previous}\n{line}")]


class MutantsTest(unittest.TestCase):

    def test_comparisons_and_operators_change(self):
        self.assertEqual(after("  return a < b;"), ["  return a <= b;"])
        self.assertEqual(after("  return a && b;"), ["  return a || b;"])
        self.assertEqual(after("  return a + b;"), ["  return a - b;"])
        self.assertEqual(after("  return true;"), ["  return false;"])

    def test_a_condition_is_negated(self):
        self.assertEqual(after("  if (a(b)) c();"), ["  if (!(a(b))) c();"])
        self.assertEqual(after("  while (a) {"), ["  while (!(a)) {"])

    def test_a_constant_grows(self):
        self.assertEqual(after("  return 0;"), ["  return 1;"])
        self.assertEqual(after("  return 64u;"), ["  return 128u;"])

    def test_parts_of_other_numbers_and_words_stay(self):
        for text in ("0x10", "1'000", "1.5", "kTwo2"):
            self.assertEqual(after(f"  return {text};"), [])

    def test_a_statement_is_dropped(self):
        self.assertEqual(after("  Flush();"), ["  ;"])
        self.assertEqual(after("  a_ = b;"), ["  ;"])
        self.assertEqual(after("  ++a_;"), ["  ;"])

    def test_what_is_no_whole_statement_stays(self):
        self.assertEqual(after("      Flush();", previous="  a ="), [])
        self.assertEqual(after("  Foo() = default;"), [])
        self.assertEqual(after("  return Flush();"), [])

    def test_comments_texts_and_directives_stay(self):
        self.assertEqual(after("  // a < 1"), [])
        self.assertEqual(after("#if A > 1"), [])
        self.assertEqual(after('  return "a < 1";  // true'), [])

    def test_no_other_line_is_touched(self):
        text = "a < b;\n  c < d;\n"
        for mutant in mutants.mutants(text):
            changed = mutants.applied(text, mutant).split("\n")
            changed[mutant.number - 1] = mutant.before
            self.assertEqual("\n".join(changed), text)


class MutateTest(unittest.TestCase):

    def setUp(self):
        self.tool = load_tool()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.file = self.root / "transport/wire/a.cc"
        self.file.parent.mkdir(parents=True)
        self.file.write_text("  Go();\n  if (a < 1) Stop();\n")

    def tree(self, code):
        """Returns a worktree whose tests end with `code`, and the seen lines."""
        tree = object.__new__(self.tool.Worktree)
        tree.root = self.root
        seen = []

        def test(layer):
            seen.append((layer, self.file.read_text()))
            if code is None:
                raise KeyboardInterrupt
            return subprocess.CompletedProcess(
                [], code, stdout="//tests/x:y   FAILED in 1s\n")

        tree.test = test
        return tree, seen

    def test_a_seed_stands_for_one_mutant(self):
        first = self.tool.choose(self.root, ["wire"], 7)
        self.assertEqual(first, self.tool.choose(self.root, ["wire"], 7))
        self.assertGreater(
            len({self.tool.choose(self.root, ["wire"], seed)
                 for seed in range(50)}), 2)

    def test_the_tests_see_the_broken_line_which_is_mended_then(self):
        text = self.file.read_text()
        for code, noticed in ((0, False), (3, True), (1, None)):
            tree, seen = self.tree(code)
            self.assertEqual(self.tool.run_seed(tree, ["wire"], 1), noticed)
            self.assertEqual(seen[0][0], "wire")
            self.assertNotEqual(seen[0][1], text)
            self.assertEqual(self.file.read_text(), text)

    def test_it_is_mended_where_the_run_is_cut_short(self):
        text = self.file.read_text()
        tree, _ = self.tree(None)
        with self.assertRaises(KeyboardInterrupt):
            self.tool.run_seed(tree, ["wire"], 1)
        self.assertEqual(self.file.read_text(), text)


if __name__ == "__main__":
    unittest.main()
