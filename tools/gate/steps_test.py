#!/usr/bin/env -S python3 -B
"""Tests the steps of tools/test."""

import os
import pathlib
import subprocess
import tempfile
import unittest

STEPS = pathlib.Path(__file__).resolve().parent / "steps.sh"

# The clock of the tests, in seconds. Bash's time variables become ordinary once
# they are unset.
CLOCK = """unset EPOCHSECONDS EPOCHREALTIME
EPOCHSECONDS=1000 EPOCHREALTIME=1000.000000"""


class GateStepsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "work").mkdir()

    def bash(self, commands):
        """Runs commands with a stopped clock."""
        run = subprocess.run(
            ["bash", "-euc", f"{CLOCK}; . {STEPS}; {commands}"], text=True,
            check=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env={**os.environ, "GATE_FOLDER": str(self.folder / "work"),
                 "XDG_CACHE_HOME": str(self.folder / "cache")})
        return run.stdout

    def keep(self, text):
        kept = self.folder / "cache/penstock/test-times-default"
        kept.parent.mkdir(parents=True, exist_ok=True)
        kept.write_text(text)
        return kept

    def test_a_step_says_where_it_is_and_what_is_left_on_a_bare_machine(self):
        said = self.bash("plan_steps default set-up tests VM;"
                         "begin_step set-up; ((GATE_BEGUN -= 240)); begin_step tests")
        self.assertEqual(said.splitlines(), [
            "", "== 1/3 set-up: 0 s so far, about 37 min to go",
            "", "== 2/3 tests: 4 min so far, about 35 min to go"])

    def test_the_last_run_says_how_long_a_step_takes(self):
        self.keep("tests 600\nVM 30\nnonsense\nset-up x\n")
        said = self.bash("plan_steps default set-up tests VM; begin_step tests;"
                         "echo $GATE_EXPECTED_S $GATE_AFTER_S; begin_step VM")
        self.assertIn("2/3 tests: 0 s so far, about 11 min to go\n600 30", said)
        self.assertIn("3/3 VM: 0 s so far, about 30 s to go", said)

    def test_a_tier_may_have_figures_of_its_own(self):
        self.assertIn("1/1 tests: 0 s so far, about 4 min to go",
                      self.bash("plan_steps quick tests; begin_step tests"))

    def test_without_a_tier_nothing_is_estimated_or_kept(self):
        said = self.bash("plan_steps '' tests; begin_step tests; end_steps;"
                         "echo ${GATE_EXPECTED_S:-unknown}")
        self.assertEqual(said, "\n== 1/1 tests: 0 s so far\nunknown\n")
        self.assertFalse((self.folder / "cache").exists())

    def test_times_are_kept_beside_those_of_other_steps(self):
        kept = self.keep("tests 600\nVM 30\n")
        self.bash("plan_steps default set-up tests; begin_step set-up;"
                  "begin_step tests; end_steps")
        self.assertEqual(sorted(kept.read_text().splitlines()),
                         ["VM 30", "set-up 0", "tests 0"])

    def test_no_place_for_times_does_no_harm(self):
        (self.folder / "cache").write_text("a file")
        self.bash("plan_steps default tests; begin_step tests; end_steps")

    def test_steps_and_commands_are_timed_for_the_profile(self):
        self.bash("plan_steps default tests VM; begin_step tests;"
                  "timed set-up 'a name' true; timed demo x false || true;"
                  "begin_step VM; end_steps")
        lines = (self.folder / "work/times").read_text().splitlines()
        self.assertEqual([line.split("\t")[:2] for line in lines],
                         [["set-up", "a name"], ["demo", "x"],
                          ["step", "tests"], ["step", "VM"]])
        self.assertEqual({line.split("\t")[2] for line in lines}, {"0.000"})

    def test_times_have_milliseconds(self):
        self.bash("begin=$(now_ms); EPOCHREALTIME=1061,987654;"
                  "note_time VM x $begin")
        self.assertEqual((self.folder / "work/times").read_text(),
                         "VM\tx\t61.987\n")

    def test_a_commands_exit_code_is_kept(self):
        self.assertEqual(self.bash("timed a b bash -c 'exit 7' || echo $?"),
                         "7\n")

    def test_durations_are_as_a_person_says_them(self):
        self.assertEqual(
            self.bash("for s in 0 59 60 150 3570 4800; do duration $s; done")
            .splitlines(),
            ["0 s", "59 s", "1 min", "3 min", "1 h 0 min", "1 h 20 min"])


if __name__ == "__main__":
    unittest.main()
