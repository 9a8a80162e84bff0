#!/usr/bin/env -S python3 -B
"""Tests count_tests on build events as Bazel 4.2 writes them."""

import pathlib
import tempfile
import unittest

import count_tests

GTEST_REPORT = """<testsuites><testsuite name="Pool">
<testcase name="Lends" classname="Pool" status="run" result="completed"/>
<testcase name="Grows" classname="Pool" status="run" result="completed">
  <failure message="pool.cc:3&#x0A;Expected equality" type=""/></testcase>
<testcase name="Pins" classname="Pool" status="run" result="skipped">
  <skipped message="no RDMA device"/></testcase>
<testcase name="DISABLED_Off" classname="Pool" status="notrun"
  result="suppressed"/>
</testsuite></testsuites>"""
BAZEL_REPORT = """<testsuites><testsuite name="t"><testcase name="t/a">
<error message="exited with error code 134"/></testcase></testsuite>
</testsuites>"""


class CountTestsTest(unittest.TestCase):

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def result(self, label, status, report="", **key):
        """Returns a testResult event whose report is in a file."""
        outputs = []
        if report:
            path = pathlib.Path(self.folder.name, label.strip("/") + " x.xml")
            path.write_text(report)
            outputs = [{"name": "test.xml", "uri": path.as_uri()}]
        return {"id": {"testResult": {"label": label, **key}},
                "testResult": {"status": status, "testActionOutput": outputs}}

    def count(self, *events, exit_code=0):
        return count_tests.outcomes(*count_tests.collect(events), exit_code)

    def test_each_case_of_a_report_counts(self):
        self.assertEqual(
            self.count(self.result("//a", "FAILED", GTEST_REPORT),
                       exit_code=3),
            [("passed", "//a Pool.Lends", ""),
             ("failed", "//a Pool.Grows", "pool.cc:3 Expected equality"),
             ("skipped", "//a Pool.Pins", "no RDMA device"),
             ("skipped", "//a Pool.DISABLED_Off", "disabled in the source")])

    def test_a_target_without_a_report_counts_once(self):
        self.assertEqual(self.count(self.result("//a", "PASSED")),
                         [("passed", "//a ", "")])

    def test_a_crash_and_a_timeout_fail_once(self):
        self.assertEqual(
            self.count(self.result("//a", "FAILED", BAZEL_REPORT),
                       self.result("//b", "TIMEOUT", BAZEL_REPORT),
                       exit_code=3),
            [("failed", "//a t/a", "exited with error code 134"),
             ("failed", "//b ", "timed out")])

    def test_a_failed_process_counts_although_its_report_is_good(self):
        report = GTEST_REPORT.replace("failure", "note")
        self.assertIn(("failed", "//a ", "failed"),
                      self.count(self.result("//a", "FAILED", report),
                                 exit_code=3))

    def test_a_later_attempt_replaces_an_earlier_one_and_tells_of_it(self):
        self.assertEqual(
            self.count(self.result("//a", "FAILED", BAZEL_REPORT, attempt=1),
                       self.result("//a", "FLAKY", attempt=2)),
            [("passed", "//a ", ""),
             ("flaky", "//a ", "t/a exited with error code 134")])

    def test_what_fails_twice_fails_once(self):
        self.assertEqual(
            self.count(self.result("//a", "FAILED", attempt=1),
                       self.result("//a", "TIMEOUT", attempt=2), exit_code=3),
            [("failed", "//a ", "timed out")])

    def test_shards_add_up(self):
        self.assertEqual(
            len(self.count(self.result("//a", "PASSED", shard=1),
                           self.result("//a", "PASSED", shard=2))), 2)

    def test_what_does_not_build_fails(self):
        broken = {"id": {"targetCompleted": {"label": "//a"}}, "completed": {}}
        self.assertEqual(self.count(broken, exit_code=1),
                         [("failed", "//a", "does not build")])

    def test_a_broken_build_file_fails_beside_other_failures(self):
        cases = self.count(self.result("//a", "FAILED"), exit_code=1)
        self.assertEqual([case[:2] for case in cases],
                         [("failed", "//a "), ("failed", "bazel test")])

    def test_a_run_without_tests_fails(self):
        for exit_code in 0, count_tests.NO_TESTS_FOUND:
            self.assertEqual(self.count(exit_code=exit_code)[0][0], "failed")

    def test_no_test_may_be_right_where_others_run_elsewhere(self):
        self.assertEqual(count_tests.outcomes(
            {}, {}, count_tests.NO_TESTS_FOUND, may_be_empty=True), [])


if __name__ == "__main__":
    unittest.main()
