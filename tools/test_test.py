#!/usr/bin/env -S python3 -B
"""Tests tools/test with scripts in place of Bazel and of the other tools."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import tempfile
import time
import unittest

TOOLS = pathlib.Path(__file__).resolve().parent
OURS = ["clock.sh", "lib.sh", "tensorflow.sh", "test"]
OTHERS = ["check_english", "check_format", "check_layers", "check_wheel",
          "demo", "lint", "setup"]
# A stand-in for Bazel, which records its arguments, and runs BAZEL_DOES.
BAZEL = """#!/bin/bash
echo "$*" >>"{folder}/bazel"
[[ " $* " == *" test "* ]] || exit 0
for flag; do
  case $flag in
    --build_event_json_file=*) cp "{folder}/events" "${flag#*=}" ;;
  esac
done
eval "${BAZEL_DOES:-}"
"""


def result(label, status, attempt=1):
    return {"id": {"testResult": {"label": label, "attempt": attempt}},
            "testResult": {"status": status}}


class TestTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name).resolve()
        tools = self.folder / "tree/tools"
        tools.mkdir(parents=True)
        (self.folder / "tree/a").mkdir()
        (self.folder / "tree/a/BUILD").touch()
        for name in OURS:
            shutil.copy(TOOLS / name, tools)
        shutil.copytree(TOOLS / "gate", tools / "gate",
                        ignore=shutil.ignore_patterns("*_test.py", "__py*"))
        for name in OTHERS:
            self.program(tools / name,
                         f'echo "{name} $*" >>{self.folder}/called')
        (self.folder / "bin").mkdir()
        self.program(self.folder / "bin/bazel",
                     BAZEL.replace("{folder}", str(self.folder)))
        self.happen(result("//a:a", "PASSED"))

    @staticmethod
    def program(path, text):
        path.write_text(text if text.startswith("#!") else
                        f"#!/bin/bash\n{text}\n")
        path.chmod(0o755)

    def happen(self, *events):
        (self.folder / "events").write_text(
            "".join(json.dumps(event) + "\n" for event in events))

    def start(self, *flags, bazel_does="", **more):
        environment = {
            **os.environ, "BAZEL_DOES": bazel_does,
            "PATH": f"{self.folder}/bin:{os.environ['PATH']}",
            "TMPDIR": str(self.folder), "HOME": str(self.folder)}
        for name in ("XDG_CACHE_HOME", "PENSTOCK_TENSORFLOW"):
            environment.pop(name, None)
        return subprocess.Popen(
            [self.folder / "tree/tools/test", *flags], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=environment,
            **more)

    def run_test(self, *flags, **more):
        """Returns the output and the exit code."""
        run = self.start(*flags, **more)
        said = run.communicate()[0]
        return said, run.returncode

    def called(self):
        return (self.folder / "called").read_text().splitlines()

    def bazel(self, command="test"):
        """Returns the command lines of Bazel with this command."""
        lines = (self.folder / "bazel").read_text().splitlines()
        return [line for line in lines if f" {command} " in f" {line} "]

    def test_the_last_line_is_the_sum(self):
        said, code = self.run_test("--without-vm", "--without-tensorflow")
        self.assertEqual(said.splitlines()[-2:],
                         ["verbs in the VM: 0 tests",
                          "5 passed, 0 failed, 1 skipped"])
        self.assertEqual(code, 0)

    def test_each_step_has_a_header(self):
        said, _ = self.run_test("--without-tensorflow", "--with-demo")
        self.assertEqual([line.split(":")[0] for line in said.splitlines()
                          if line.startswith("== ")],
                         ["== 1/6 set-up", "== 2/6 checks", "== 3/6 lint",
                          "== 4/6 tests", "== 6/6 demo"])
        self.assertIn("setup --vm", self.called())
        self.assertEqual(self.called()[-2:], ["demo --quick", "check_wheel "])

    def test_the_quick_tier_takes_small_tests_and_little_set_up(self):
        said, code = self.run_test("--quick")
        self.assertEqual(code, 0, said)
        self.assertEqual(self.called(),
                         ["setup ", "check_layers ", "check_format ",
                          "check_english ", "lint --recent=8"])
        line, = self.bazel()
        self.assertIn("--test_size_filters=small", line)
        self.assertIn("--test_tag_filters=-vm,-vm-own,-vm-two,-tensorflow,"
                      "-full,-external", line)
        self.assertEqual(said.splitlines()[-1], "5 passed, 0 failed")

    def test_tiers_differ_in_what_they_lint(self):
        for flags, lint in ((), "lint --recent=16"), \
                (("--lint-recent=64",), "lint --recent=64"), \
                (("--full", "--sanitize=asan"), "lint "):
            (self.folder / "called").unlink(missing_ok=True)
            self.run_test(*flags)
            self.assertIn(lint, self.called())

    def test_quick_and_full_exclude_each_other(self):
        self.assertEqual(self.run_test("--quick", "--full")[1], 2)

    def test_more_repeated_tests_than_the_limit_fail(self):
        self.happen(result("//a:a", "FAILED"), result("//a:a", "FLAKY", 2))
        for flags, expected in (["--retry"], 0), (["--retry=1"], 0), \
                (["--retry=0"], 1):
            said, code = self.run_test("--quick", *flags)
            self.assertEqual(code, expected, said)
            self.assertIn("1 passed when repeated", said.splitlines())
            self.assertIn("--flaky_test_attempts=2", self.bazel()[-1])
        self.assertEqual(said.splitlines()[-1], "5 passed, 1 failed")

    def test_a_failed_check_is_named(self):
        self.program(self.folder / "tree/tools/check_layers", "exit 3")
        said, code = self.run_test("--quick")
        self.assertEqual(code, 1)
        self.assertIn("FAILED: tools/check_layers: exit code 3", said)

    def test_the_profile_is_printed_before_the_sum(self):
        said, _ = self.run_test("--quick", "--profile")
        self.assertRegex(said, r"(?s)where the time went.*\n +\d.*tools/setup"
                         r".*passed, 0 failed\n$")
        self.assertNotIn("where the time went", self.run_test("--quick")[0])

    def test_a_complete_run_keeps_its_times(self):
        kept = self.folder / ".cache/penstock/test-times-quick"
        self.run_test("--quick", "//a/...")
        self.assertFalse(kept.exists())
        self.run_test("--quick")
        self.assertRegex(kept.read_text(), r"(?m)^tests \d+$")

    def assert_no_group(self, group):
        for _ in range(600):
            try:
                os.killpg(group, 0)
            except ProcessLookupError:
                return
            time.sleep(0.05)
        self.fail("a process stayed")

    def interrupt(self, run):
        """Interrupts a run once it said "ready"."""
        while "ready" not in run.stdout.readline():
            self.assertIsNone(run.poll())
        os.killpg(run.pid, signal.SIGINT)
        said = run.communicate()[0]
        self.assertEqual(run.returncode, 130)
        self.assertNotIn("passed", said)
        self.assert_no_group(run.pid)
        self.assertEqual(list(self.folder.glob("tmp.*")), [])

    def test_an_interrupt_while_bazel_runs_ends_all(self):
        self.interrupt(self.start(
            "--quick", start_new_session=True, bazel_does="trap 'exit 8' INT;"
            "echo ready; while :; do sleep 0.1; done"))

    def test_an_interrupt_in_any_other_step_ends_all(self):
        for name in "setup", "check_format", "lint":
            program = self.folder / f"tree/tools/{name}"
            text = program.read_text()
            self.program(program, "echo ready; exec sleep 100")
            self.interrupt(self.start("--quick", start_new_session=True))
            self.program(program, text)


if __name__ == "__main__":
    unittest.main()
