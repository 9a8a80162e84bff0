#!/usr/bin/env -S python3 -B
"""Tests tally.py on lines as count_tests.py prints them."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

TALLY = pathlib.Path(__file__).resolve().parent / "tally.py"


class GateTallyTest(unittest.TestCase):

    def close(self, *cases, vm=(), flags=()):
        """Returns the closing lines and the exit code."""
        with tempfile.TemporaryDirectory() as folder:
            paths = [pathlib.Path(folder, name) for name in ("all", "vm")]
            for path, lines in zip(paths, (cases, vm)):
                path.write_text("".join("\t".join(case) + "\n"
                                        for case in lines))
            run = subprocess.run([sys.executable, "-B", TALLY, *flags, *paths],
                                 stdout=subprocess.PIPE, text=True,
                                 check=False)
        return run.stdout.splitlines(), run.returncode

    def test_the_sum_is_the_last_line(self):
        lines, code = self.close(("passed", "//a", ""), ("passed", "//b", ""))
        self.assertEqual((lines[-1], code), ("2 passed, 0 failed", 0))

    def test_what_failed_is_named_with_its_reason(self):
        lines, code = self.close(
            ("passed", "//a", ""), ("failed", "//b", "timed out"),
            ("failed", "//c", ""))
        self.assertEqual((lines, code), (
            ["", "FAILED: //b: timed out", "FAILED: //c",
             "verbs in the VM: 0 tests", "1 passed, 2 failed"], 1))

    def test_reasons_to_skip_are_counted(self):
        lines, code = self.close(
            ("skipped", "//a", "no GPU"), ("skipped", "//b", "no GPU"),
            ("skipped", "//c", "no curl"), ("passed", "//d", ""))
        self.assertEqual(lines[1:3], ["skipped: 2 x no GPU",
                                      "skipped: 1 x no curl"])
        self.assertEqual((lines[-1], code),
                         ("1 passed, 0 failed, 3 skipped", 0))

    def test_only_tests_that_ran_in_the_vm_used_verbs(self):
        vm = [("passed", "//a", ""), ("flaky", "//a", "x"),
              ("skipped", "//b", "no device"), ("failed", "//c", "")]
        self.assertIn("verbs in the VM: 2 tests", self.close(*vm, vm=vm)[0])

    def test_nothing_passed_is_no_success(self):
        self.assertEqual(self.close(), (["", "verbs in the VM: 0 tests",
                                         "0 passed, 0 failed"], 1))

    FLAKY = [case for name in "abc"
             for case in (("passed", f"//{name}", ""),
                          ("flaky", f"//{name}", "exit code 1"))]

    def test_those_that_passed_when_repeated_are_named_and_counted(self):
        lines, code = self.close(*self.FLAKY)
        self.assertEqual((lines, code), (
            [""] + [f"PASSED WHEN REPEATED: //{name}: exit code 1"
                    for name in "abc"] +
            ["3 passed when repeated", "verbs in the VM: 0 tests",
             "3 passed, 0 failed"], 0))

    def test_none_that_passed_when_repeated_says_nothing(self):
        lines, _ = self.close(("passed", "//a", ""))
        self.assertNotIn("repeated", " ".join(lines))

    def test_as_many_as_the_limit_may_pass_when_repeated(self):
        lines, code = self.close(*self.FLAKY, flags=["--retry=3"])
        self.assertEqual((lines[-1], code), ("3 passed, 0 failed", 0))

    def test_more_than_the_limit_is_a_failure_that_says_why(self):
        lines, code = self.close(*self.FLAKY, flags=["--retry=2"])
        self.assertEqual((lines[-1], code), ("3 passed, 1 failed", 1))
        self.assertIn("FAILED: tools/test --retry=2: 3 tests passed only when "
                      "repeated, at most 2 may", lines)

    def test_a_limit_of_none_allows_none(self):
        self.assertEqual(self.close(*self.FLAKY, flags=["--retry=0"])[1], 1)


if __name__ == "__main__":
    unittest.main()
