#!/usr/bin/env -S python3 -B
"""Tests vm_tests with a stand-in for rdma-vm that runs on the host."""

import contextlib
import io
import json
import pathlib
import tempfile
import unittest

import vm_tests

# A stand-in for rdma-vm, which ignores its options and runs the command, for -n
# 2 twice, with marks.
RDMA_VM = """#!/bin/bash
echo "$*" >>{folder}/boots
hosts=1
[[ $3 != -n ]] || hosts=$4
while [[ $1 != -- ]]; do shift; done
shift
((hosts > 1)) || exec "$@"
for ((i = 0; i < hosts; i++)); do
  RDMA_VM_RANK=$i "$@" | sed "s/^/[$i] /"
done
"""
REPORT = """<testsuites><testsuite name="Pool">
<testcase name="Lends" classname="Pool" status="run" result="completed"/>
<testcase name="Pins" classname="Pool" status="run" result="skipped">
  <skipped message="no device"/></testcase></testsuite></testsuites>"""
# A command that takes run_all and with it the "machine" down.
CRASH = "kill -KILL $PPID; sleep 2"


class VmTestsTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "t").mkdir()
        self.use_rdma_vm(RDMA_VM)
        self.use_lanes(1)
        self.rules, self.events = "", []
        self.said = ""

    def use_rdma_vm(self, text):
        path = self.folder / "rdma-vm"
        path.write_text(text.replace("{folder}", str(self.folder)))
        path.chmod(0o755)
        was = vm_tests.RDMA_VM
        self.addCleanup(setattr, vm_tests, "RDMA_VM", was)
        vm_tests.RDMA_VM = path

    def use_lanes(self, lanes):
        self.addCleanup(setattr, vm_tests, "LANES", vm_tests.LANES)
        vm_tests.LANES = lanes

    def add(self, name, script="", tags=("vm",), builds=True):
        program = self.folder / "t" / name
        program.write_text("#!/bin/bash\n" + script)
        program.chmod(0o755)
        (self.folder / "t" / f"{name}.runfiles" / "penstock").mkdir(
            parents=True)
        tags = "".join(f'<string value="{tag}"/>' for tag in tags)
        self.rules += (f'<rule name="//t:{name}"><string name="timeout" '
                       f'value="short"/><list name="tags">{tags}</list>'
                       "</rule>")
        self.events.append({"id": {"targetCompleted": {"label": f"//t:{name}"}},
                            "completed": {"success": True} if builds else {}})

    def read(self, full=False):
        path = self.folder / "query.xml"
        path.write_text(f"<query>{self.rules}</query>")
        return vm_tests.read_tests(path, full)

    def run_tests(self, run=vm_tests.run_boots):
        """Returns the lines of the tally as tuples."""
        events = self.folder / "events"
        events.write_text("\n".join(map(json.dumps, self.events)))
        tests = self.read()
        broken = vm_tests.what_does_not_build(tests, events)
        with contextlib.redirect_stderr(io.StringIO()) as said:
            run(
                [test for test in tests if test.label not in broken],
                self.folder, self.folder)
        self.said = said.getvalue()
        return list(vm_tests.tally(tests, broken))

    def boots(self):
        return (self.folder / "boots").read_text().splitlines()

    def test_each_case_of_a_report_counts(self):
        self.add("a", f"echo '{REPORT}' >$XML_OUTPUT_FILE")
        self.assertEqual(self.run_tests(),
                         [("passed", "//t:a Pool.Lends", ""),
                          ("skipped", "//t:a Pool.Pins", "no device")])

    def test_a_program_without_a_report_counts_once(self):
        self.add("a", "exit 0")
        self.add("b", "exit 3")
        self.assertEqual(self.run_tests(),
                         [("passed", "//t:a", ""),
                          ("failed", "//t:b", "exit code 3")])

    def test_a_failure_after_a_good_report_counts(self):
        self.add("a", f"echo '{REPORT}' >$XML_OUTPUT_FILE; kill -ABRT $$")
        self.assertIn(("failed", "//t:a", "killed by signal 6"),
                      self.run_tests())

    def test_a_broken_report_fails(self):
        self.add("a", "echo '<x' >$XML_OUTPUT_FILE")
        (outcome, _, reason), = self.run_tests()
        self.assertEqual(outcome, "failed")
        self.assertIn("its report cannot be read", reason)

    def test_only_failed_tests_show_their_output(self):
        self.add("a", "echo words of a")
        self.add("b", "echo words of b; exit 1")
        self.run_tests()
        self.assertNotIn("words of a", self.said)
        self.assertIn("words of b", self.said)

    def test_tests_share_a_boot_by_their_tag(self):
        self.add("a")
        self.add("b")
        self.add("c", tags=["vm-own"])
        self.add("d", tags=["vm-two"])
        self.assertEqual([case[0] for case in self.run_tests()],
                         ["passed"] * 4)
        self.assertEqual([boot.split()[2:4] for boot in self.boots()],
                         [["-d", "2"], ["-d", "2"], ["-n", "2"]])

    def test_boots_run_side_by_side(self):
        self.use_lanes(2)
        # Makes two tests that wait for each other, so each needs a machine of
        # its own.
        for name, other in ("a", "b"), ("b", "a"):
            self.add(name, f"touch {self.folder}/{name}.begun; until [[ -e "
                     f"{self.folder}/{other}.begun ]]; do sleep 0.1; done")
        self.assertEqual(self.run_tests(),
                         [("passed", "//t:a", ""), ("passed", "//t:b", "")])
        self.assertEqual(len(self.boots()), 2)

    def test_two_machines_count_once_and_fail_together(self):
        self.add("a", f"echo '{REPORT}' >$XML_OUTPUT_FILE", tags=["vm-two"])
        self.add("b", "exit $RDMA_VM_RANK", tags=["vm-two"])
        self.assertEqual(self.run_tests(),
                         [("passed", "//t:a Pool.Lends", ""),
                          ("skipped", "//t:a Pool.Pins",
                           "machine 0: no device"),
                          ("failed", "//t:b", "machine 1: exit code 1")])

    def test_a_dead_machine_fails_its_test_and_the_rest_gets_another(self):
        self.add("a")
        self.add("b", CRASH)
        self.add("c")
        self.assertEqual(
            self.run_tests(),
            [("passed", "//t:a", ""),
             ("failed", "//t:b",
              "the VM ended or hung in this test, which did not report"),
             ("passed", "//t:c", "")])
        self.assertEqual(len(self.boots()), 2)

    def test_what_fails_is_run_once_more_where_asked_for(self):
        mark = self.folder / "mark"
        self.add("once", f"[[ -e {mark} ]] || {{ touch {mark}; exit 1; }}")
        self.add("always", "exit 2")
        self.add("good")
        self.assertEqual(self.run_tests(vm_tests.run_with_retry), [
            ("failed", "//t:always", "exit code 2"),
            ("passed", "//t:good", ""),
            ("passed", "//t:once", ""),
            ("flaky", "//t:once", "exit code 1")])
        boots = (self.folder / "boots").read_text().splitlines()
        self.assertEqual(len(boots), 2)

    def test_a_machine_that_does_not_start_fails_all(self):
        self.use_rdma_vm("#!/bin/bash\necho no kernel >&2; exit 125")
        self.add("a")
        self.add("b")
        self.assertEqual(self.run_tests(),
                         [("failed", f"//t:{name}",
                           "did not run: the VM did not start")
                          for name in "ab"])
        self.assertIn("no kernel", self.said)

    def test_a_machine_that_hangs_is_ended(self):
        self.use_rdma_vm("#!/bin/bash\nexec sleep 1000")
        was = vm_tests.BOOT_LIMIT_S
        self.addCleanup(setattr, vm_tests, "BOOT_LIMIT_S", was)
        vm_tests.BOOT_LIMIT_S = 1
        self.add("a")
        self.assertEqual(self.run_tests()[0][0], "failed")
        self.assertIn("the VM hangs", self.said)

    def test_what_does_not_build_fails_and_does_not_run(self):
        self.add("a", "exit 0", builds=False)
        self.assertEqual(self.run_tests(),
                         [("failed", "//t:a", "does not build")])

    def test_progress_counts_tests_that_ended(self):
        self.add("a")
        self.add("b", "exit 1")
        self.add("c", CRASH)
        tests, seen = self.read(), []
        with contextlib.redirect_stderr(io.StringIO()):
            vm_tests.run_boots(tests, self.folder, self.folder,
                               lambda: seen.append(vm_tests.progress(tests)))
        self.assertEqual(seen[0], ("0 of 3 tests done, 0 failed", 0))
        self.assertEqual(seen[-1], ("2 of 3 tests done, 1 failed", 2 / 3))

    def test_progress_is_shown_once_a_second_at_most(self):
        now, calls = [0.0], []
        tick = vm_tests.EachSecond(lambda: calls.append(now[0]),
                                   lambda: now[0])
        for now[0] in (0, 0.4, 0.9, 1.1, 1.2, 2.0, 2.2):
            tick()
        self.assertEqual(calls, [0, 1.1, 2.2])

    def test_times_tell_the_tests_from_the_boots(self):
        self.add("a")
        tests = self.read()
        tests[0].outcomes = {0: vm_tests.Outcome(), 1: vm_tests.Outcome()}
        tests[0].outcomes[0].seconds, tests[0].outcomes[1].seconds = 2, 3
        self.assertEqual(list(vm_tests.times(tests, 10)), [
            "VM\t//t:a\t3.00",
            "VM\tbooting, and what no test accounts for\t7.00"])

    def test_full_and_manual_ones_run_where_asked_for(self):
        self.add("a")
        self.add("b", tags=["vm-own", "full"])
        self.add("c", tags=["vm", "manual"])
        self.add("d", tags=["full"])
        self.assertEqual([test.label for test in self.read()], ["//t:a"])
        self.assertEqual([(test.label, test.kind) for test in self.read(True)],
                         [("//t:a", "vm"), ("//t:b", "vm-own")])


if __name__ == "__main__":
    unittest.main()
