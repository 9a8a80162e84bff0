#!/usr/bin/env -S python3 -B
"""Tests progress_line on build events as Bazel 4.2 writes them."""

import json
import unittest

import progress_line


def configured(label, is_test=False):
    event = {"id": {"targetConfigured": {"label": label}},
             "configured": {"targetKind": "rule"}}
    if is_test:
        event["configured"]["testSize"] = "SMALL"
    return event


def completed(label, success=True):
    return {"id": {"targetCompleted": {"label": label}},
            "completed": {"success": True} if success else {}}


def tested(label, status="PASSED"):
    return {"id": {"testSummary": {"label": label}},
            "testSummary": {"overallStatus": status}}


def progress_of(*events):
    progress = progress_line.BazelProgress()
    progress.feed("".join(json.dumps(event) + "\n"
                          for event in events).encode())
    return progress


class BazelProgressTest(unittest.TestCase):

    def test_targets_tests_and_failures_are_counted(self):
        progress = progress_of(
            configured("//a"), configured("//b", True), configured("//c", True),
            configured("//d", True),
            completed("//a"), completed("//b"), completed("//c", False),
            tested("//b"))
        self.assertEqual(
            progress.text(testing=True),
            "2 of 3 test targets done, 1 failed, 3 of 4 targets built")
        self.assertEqual(progress.share(testing=True), 5 / 7)
        self.assertEqual(progress.text(testing=False),
                         "3 of 4 targets built, 1 failed")
        self.assertEqual(progress.share(testing=False), 3 / 4)

    def test_a_test_that_passed_when_repeated_did_not_fail(self):
        self.assertIn("1 of 1 test targets done, 0 failed",
                      progress_of(configured("//a", True), completed("//a"),
                                  tested("//a", "FLAKY")).text(True))

    def test_a_target_that_needs_what_is_not_here_did_not_fail(self):
        skipped = dict(completed("//a", success=False),
                       aborted={"reason": "SKIPPED"})
        self.assertIn("1 of 1 test targets done, 0 failed",
                      progress_of(configured("//a", True), skipped).text(True))

    def test_nothing_is_known_before_the_first_target(self):
        progress = progress_of({"id": {"started": {}}})
        self.assertEqual(progress.text(True), "loading")
        self.assertEqual(progress.share(True), 0)

    def test_events_may_arrive_in_pieces_and_damaged(self):
        text = b"nonsense\n" + json.dumps(configured("//a")).encode() + b"\n"
        progress = progress_line.BazelProgress()
        for start in range(len(text)):
            progress.feed(text[start:start + 1])
        self.assertEqual(progress.text(False), "0 of 1 targets built, 0 failed")

    def test_an_aspect_on_a_target_is_another_target(self):
        aspect = completed("//a")
        aspect["id"]["targetCompleted"]["aspect"] = "lint"
        self.assertEqual(
            progress_of(configured("//a"), completed("//a"), aspect)
            .text(False), "2 of 2 targets built, 0 failed")


class RemainingTest(unittest.TestCase):

    def test_experience_counts_at_first(self):
        self.assertEqual(progress_line.remaining(0, 0, 600), 600)
        self.assertEqual(progress_line.remaining(0, 60, 600), 540)

    def test_only_this_runs_speed_counts_from_half_on(self):
        self.assertEqual(progress_line.remaining(0.5, 300, 6000), 300)
        self.assertEqual(progress_line.remaining(0.75, 300, 6000), 100)

    def test_both_count_in_between(self):
        # Expects a total between 600 s, by experience, and 400 s, by speed.
        self.assertEqual(progress_line.remaining(0.25, 100, 600), 400)

    def test_nobody_can_say_how_late_a_late_step_will_be(self):
        self.assertIsNone(progress_line.remaining(0, 700, 600))

    def test_without_experience_only_speed_counts(self):
        self.assertIsNone(progress_line.remaining(0, 10, None))
        self.assertIsNone(progress_line.remaining(0.01, 10, None))
        self.assertEqual(progress_line.remaining(0.1, 10, None), 90)

    def test_nothing_is_left_at_the_end(self):
        self.assertEqual(progress_line.remaining(1, 700, 600), 0)
        self.assertEqual(progress_line.remaining(1, 700, None), 0)


class LineTest(unittest.TestCase):

    def setUp(self):
        self.now = 1000.0

    def line(self, **arguments):
        return progress_line.Line("tests", lambda: self.now, **arguments)

    def test_says_the_time_of_the_run_and_the_estimate_of_the_rest(self):
        line = self.line(begun=760, expected_s=1200, after_s=300)
        self.assertEqual(line.text("loading", 0),
                         "tests: loading; 4 min so far, about 25 min to go")

    def test_says_when_only_this_step_can_be_estimated(self):
        line = self.line()
        self.now += 30
        self.assertEqual(line.text("x", 0.5),
                         "tests: x; 30 s so far, this step about 30 s more")
        self.assertEqual(line.text("x", 0), "tests: x; 30 s so far")

    def test_is_due_once_in_30_seconds(self):
        line, due = self.line(), []
        for _ in range(100):
            self.now += 1
            if line.due():
                due.append(self.now - 1000)
        self.assertEqual(due, [30, 60, 90])

    def test_a_bar_fits_the_terminal(self):
        line = self.line()
        self.assertTrue(line.bar("x", 0.5, 200).startswith(
            "[##########..........] tests: x"))
        self.assertEqual(len(line.bar("x", 0.5, 30)), 29)

    def test_durations_are_as_a_person_says_them(self):
        self.assertEqual([progress_line.duration(seconds)
                          for seconds in (0, 59, 60, 150, 3700)],
                         ["0 s", "59 s", "1 min", "3 min", "1 h 2 min"])


if __name__ == "__main__":
    unittest.main()
