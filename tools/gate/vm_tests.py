#!/usr/bin/env python3
"""Runs tests that need RDMA devices in tools/rdma-vm; for tools/test.

The tag of a test names the machine that the test needs:

  vm      one that it shares with the others: rxe0 and rxe1, cabled
  vm-own  the same for itself alone, as it breaks devices
  vm-two  two machines; the program runs in both, with RDMA_VM_RANK

  vm_tests.py list [--full] QUERY_XML
  vm_tests.py run [--full] [--retry] [--times=FILE] --bin=DIR --events=FILE
                  QUERY_XML

`list` prints the label of each test. `run` boots machines, runs the tests, and
reports to standard error. Standard output gets one line per test case, in the
form of count_tests.py. With --retry, failed tests run once more. While the VM
runs, shows progress as watch.py does, by the same environment. QUERY_XML
is the output of `bazel query --output=xml` for all tests that may run; --events
has the events of their build. Appends the duration of each boot and each test
to --times, in the form of durations.py.
"""

import argparse
import base64
import collections
import concurrent.futures
import json
import os
import pathlib
import queue
import re
import subprocess
import sys
import tempfile
import threading
import time
import xml.etree.ElementTree as ElementTree

import count_tests
import watch

ROOT = pathlib.Path(__file__).resolve().parents[2]
RDMA_VM = ROOT / "tools/rdma-vm"
KINDS = ("vm", "vm-own", "vm-two")
MARK = "\x1e"
# The time limits of tests in seconds, by Bazel's names. The guest is an
# emulated processor: a test takes 10 to 20 times as long in the guest as
# outside.
LIMITS_S = {"short": 60, "moderate": 300, "long": 900, "eternal": 3600}
# The limit from the start of QEMU to the first test: usually 5 s, with a busy
# host 20.
BOOT_LIMIT_S = 120
# The time beyond a test's own limit, which run_all enforces unless its machine
# hangs.
GRACE_S = 30
# The number of machines at a time, with two processors each: emulation keeps a
# core busy, and the tests wait for half of their time.
LANES = max(2, len(os.sched_getaffinity(0)))
# The limit of output lines of a failed test; the last ones are kept.
MAX_LINES = 5000


def say(*words):
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)  # the progress
    print(*words, file=sys.stderr, flush=True)


class Test:
    """One test target, and its outcome in each machine."""

    def __init__(self, rule):
        self.label = rule.get("name")
        strings = {item.get("name"): item.get("value")
                   for item in rule.iter("string")}
        self.limit_s = LIMITS_S[strings.get("timeout", "moderate")]
        self.args = self._list(rule, "args")
        self.tags = set(self._list(rule, "tags"))
        self.kind = next((kind for kind in KINDS[::-1] if kind in self.tags),
                         None)
        self.outcomes = {}  # {machine: Outcome}
        self.earlier = []  # the cases of an attempt before, if any

    def has_ended(self):
        """Returns True once no machine runs the test any more."""
        return bool(self.outcomes) and all(
            outcome.code is not None for outcome in self.outcomes.values())

    @staticmethod
    def _list(rule, name):
        return [item.get("value") for found in rule.iter("list")
                if found.get("name") == name for item in found]

    def plan(self, folder):
        package, name = self.label[2:].split(":")
        program = pathlib.Path(folder, package, name)
        return {"program": str(program), "args": self.args,
                "folder": f"{program}.runfiles/penstock",
                "limit_s": self.limit_s}


class Outcome:
    """The outcome of one test in one machine."""

    def __init__(self):
        self.log = collections.deque(maxlen=MAX_LINES)
        self.report = []
        self.code = self.seconds = None

    def take(self, event):
        if event["event"] == "report":
            self.report.append(event["part"])
        elif event["event"] == "end":
            self.code, self.seconds = event["code"], event["seconds"]

    def problem(self):
        """Returns why the program failed, or ""."""
        if self.code == 0:
            return ""
        if self.code is None:
            return "the VM ended or hung in this test, which did not report"
        if self.code == "timeout":
            return f"timed out after {self.seconds:.0f} s"
        if self.code < 0:
            return f"killed by signal {-self.code}"
        return f"exit code {self.code}"

    def cases(self):
        """Returns [(outcome, name, reason)], at least one."""
        cases = []
        try:
            report = b"".join(base64.b64decode(part) for part in self.report)
            if report:
                cases += count_tests.read_cases(ElementTree.fromstring(report))
        except (ValueError, ElementTree.ParseError) as error:
            cases.append(("failed", "", f"its report cannot be read: {error}"))
        problem = self.problem()
        if problem and not any(case[0] == "failed" for case in cases):
            cases.append(("failed", "", problem))
        return cases or [("passed", "", "")]


def merge(outcomes):
    """Returns the cases of a program that ran in several machines, each once.

    A case fails if it failed in one machine. A case passes if it passed in one
    machine and failed in none.
    """
    rank = {"failed": 0, "passed": 1, "skipped": 2}
    merged = {}
    for machine, outcome in sorted(outcomes.items()):
        for verdict, name, reason in outcome.cases():
            if reason and len(outcomes) > 1:
                reason = f"machine {machine}: {reason}"
            known = merged.get(name)
            if known is None or rank[verdict] < rank[known[0]]:
                merged[name] = (verdict, name, reason)
    return list(merged.values())


class Boot:
    """One start of rdma-vm: reads its output and sorts it by test."""

    def __init__(self, tests, machines):
        self.tests, self.machines = tests, machines
        self.current = {}  # {machine: Outcome of the test that runs}
        # The latest lines of output that belong to no test.
        self.said = collections.deque(maxlen=200)
        # {machine: deadline of the next event}
        self.deadlines = dict.fromkeys(range(machines),
                                       time.monotonic() + BOOT_LIMIT_S)

    def take(self, line):
        machine, text = 0, line
        if self.machines > 1:
            match = re.match(r"\[(\d+)\] ", line)
            if match:
                machine, text = int(match[1]), line[match.end():]
        if not text.startswith(MARK):
            outcome = self.current.get(machine)
            (outcome.log if outcome else self.said).append(text)
            return
        event = json.loads(text[1:])
        wait_s = GRACE_S
        if event["event"] == "start":
            self.current[machine] = Outcome()
            test = self.tests[event["index"]]
            wait_s += test.limit_s
            test.outcomes[machine] = self.current[machine]
        self.deadlines[machine] = time.monotonic() + wait_s
        self.current[machine].take(event)
        if event["event"] == "end":
            del self.current[machine]

    def hangs(self):
        """Returns True if all machines are silent for longer than allowed.

        A machine that has finished waits silently for the other.
        """
        return time.monotonic() > max(self.deadlines.values())

    def follow(self, command, ended):
        """Runs the command to its end, or ends it when the machines hang.

        ended: an event; once it is set, the machines are ended.
        """
        # Starts rdma-vm so that it gets a signal, however this process ends.
        # Then rdma-vm ends its QEMUs.
        command = ["setpriv", "--pdeathsig", "TERM", "--", *command]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        lines = queue.Queue()
        threading.Thread(target=read_lines, args=(process.stdout, lines),
                         daemon=True).start()
        try:
            while not ended.is_set() and self.take_next(lines, process):
                if self.hangs():
                    self.said.append("the VM hangs: ended\n")
                    process.terminate()
                    self.deadlines[0] = float("inf")
        finally:
            process.terminate()
            process.wait()

    def take_next(self, lines, process):
        """Waits up to a second for a line. Returns False at the end."""
        try:
            line = lines.get(timeout=1)
        except queue.Empty:
            # Returns False once the process has ended, because another process
            # may hold the pipe open.
            return process.poll() is None
        if line is not None:
            self.take(line)
        return line is not None


def read_lines(pipe, lines):
    with pipe:
        for line in pipe:
            lines.put(line.decode(errors="replace"))
    lines.put(None)


def machines_of(test):
    return 2 if test.kind == "vm-two" else 1


def boot(tests, folder, work, ended):
    """Runs the tests in one boot. Unreached tests have no outcome."""
    file, plan = tempfile.mkstemp(dir=work, suffix=".json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump([test.plan(folder) for test in tests], out)
    machines = machines_of(tests[0])
    limit_s = BOOT_LIMIT_S + sum(test.limit_s + GRACE_S for test in tests)
    command = [RDMA_VM, "-t", str(limit_s)]
    command += ["-n", "2"] if machines > 1 else ["-d", "2"]
    run = Boot(tests, machines)
    run.follow(command + ["--", ROOT / "tests/vm/run_all", plan], ended)
    reached = [test for test in tests if test.outcomes]
    for test in reached:
        for machine in range(machines):
            test.outcomes.setdefault(machine, Outcome())
    if len(reached) < len(tests) or any(
            outcome.code is None for test in reached
            for outcome in test.outcomes.values()):
        say("".join(run.said))


def groups_of(tests):
    """Returns lists of tests, one list per boot; the longest limits first.

    Tests that share a machine are distributed over LANES machines.
    """
    by_limit = sorted(tests, key=lambda test: -test.limit_s)
    shared = [test for test in by_limit if test.kind == "vm"]
    groups = [shared[lane::LANES] for lane in range(LANES)]
    groups += [[test] for test in by_limit if test.kind != "vm"]
    return [group for group in groups if group]


def run_group(group, folder, work, ended):
    """Boots until each test has an outcome, or a VM does not start."""
    while group and not ended.is_set():
        say(f"booting for {', '.join(test.label for test in group)}")
        boot(group, folder, work, ended)
        for test in group:
            show(test)
        left = [test for test in group if not test.outcomes]
        # Continues with the rest, in another machine, because a test may have
        # crashed its machine. Ends if the machine did not even start.
        group = left if len(left) < len(group) else []


def do_nothing():
    pass


def run_boots(tests, folder, work, tick=do_nothing):
    """Runs the tests, LANES boots at a time. Calls tick once a second."""
    ended = threading.Event()
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        running = [lanes.submit(run_group, group, folder, work, ended)
                   for group in groups_of(tests)]
        try:
            tick()
            while concurrent.futures.wait(running, timeout=1).not_done:
                tick()
            tick()
        finally:
            ended.set()  # of use where this was interrupted
    for group in running:
        group.result()


def show(test):
    cases = merge(test.outcomes)
    failed = has_failed(cases)
    if test.outcomes:
        seconds = max(outcome.seconds or 0
                      for outcome in test.outcomes.values())
        say(f"{test.label}  {'FAILED' if failed else 'passed'}"
            f" in the VM in {seconds:.1f} s")
    for machine, outcome in sorted(test.outcomes.items() if failed else []):
        say(f"==== {test.label}, machine {machine}: "
            f"{outcome.problem() or 'exit code 0'}")
        say("".join(outcome.log))


def run_with_retry(tests, folder, work, tick=do_nothing):
    """Runs the tests, and once more those that failed or were not reached."""
    run_boots(tests, folder, work, tick)
    again = [test for test in tests
             if not test.outcomes or has_failed(merge(test.outcomes))]
    for test in again:
        test.earlier, test.outcomes = merge(test.outcomes), {}
    if again:
        say("once more: " + ", ".join(test.label for test in again))
        run_boots(again, folder, work, tick)


def progress(tests):
    """Returns how many tests have ended, in words, and their share."""
    ended = [test for test in tests if test.has_ended()]
    failed = sum(has_failed(merge(test.outcomes)) for test in ended)
    return (f"{len(ended)} of {len(tests)} tests done, {failed} failed",
            len(ended) / len(tests))


class EachSecond:
    """Calls a function at most once a second."""

    def __init__(self, function, clock=time.monotonic):
        self._function, self._clock, self._next = function, clock, clock()

    def __call__(self):
        if self._clock() >= self._next:
            self._next = self._clock() + 1
            self._function()


def run_with_progress(run, tests, folder, work):
    """Runs the tests, and shows how far they are. Returns the seconds it took."""
    screen = watch.Screen(watch.line_of("VM"),
                               lambda: progress(tests))
    begin = time.monotonic()
    run(tests, folder, work, EachSecond(screen.tick))
    screen.finish()
    return time.monotonic() - begin


def times(tests, seconds):
    """Yields the lines of --times for tests that took so long in all."""
    sums = {test.label: max((outcome.seconds or 0
                             for outcome in test.outcomes.values()), default=0)
            for test in tests}
    for label, of_test in sums.items():
        yield f"VM\t{label}\t{of_test:.2f}"
    yield ("VM\tbooting, and what no test accounts for\t"
           f"{max(0, seconds - sum(sums.values())):.2f}")


def has_failed(cases):
    return any(outcome == "failed" for outcome, _, _ in cases)


def tally(tests, broken):
    """Yields (outcome, label and name, reason) for all."""
    for test in tests:
        if test.label in broken:
            yield "failed", test.label, broken[test.label]
        elif not test.outcomes:
            yield "failed", test.label, "did not run: the VM did not start"
        cases = count_tests.after_retry(test.earlier, merge(test.outcomes))
        for outcome, name, reason in cases:
            yield outcome, f"{test.label} {name}".strip(), reason


def read_tests(path, full):
    rules = ElementTree.parse(path).getroot().iter("rule")
    tests = sorted(map(Test, rules), key=lambda test: test.label)
    return [test for test in tests if test.kind and
            (full or "full" not in test.tags) and "manual" not in test.tags]


def what_does_not_build(tests, path):
    """Returns {label: reason} of the programs that do not build. A program of
    an earlier build may still lie there."""
    built, broken = set(), {}
    try:
        with open(path, encoding="utf-8") as lines:
            events = [json.loads(line) for line in lines]
        _, broken = count_tests.collect(events)
        built = {event["id"]["targetCompleted"]["label"] for event in events
                 if event.get("completed", {}).get("success")}
    except OSError:  # Bazel refused its command line
        pass
    return {test.label: broken.get(test.label, "does not build")
            for test in tests if test.label not in built}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("verb", choices=["list", "run"])
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--retry", action="store_true")
    parser.add_argument("--bin", help="what `bazel info bazel-bin` says")
    parser.add_argument("--events", help="from --build_event_json_file")
    parser.add_argument("--times", help="where to append times")
    parser.add_argument("query_xml")
    arguments = parser.parse_args()
    tests = read_tests(arguments.query_xml, arguments.full)
    if arguments.verb == "list":
        print(*(test.label for test in tests), sep="\n",
              end="\n" if tests else "")
        return
    broken = what_does_not_build(tests, arguments.events)
    run = run_with_retry if arguments.retry else run_boots
    built = [test for test in tests if test.label not in broken]
    if built:
        seconds = run_with_progress(run, built, arguments.bin,
                                    pathlib.Path(arguments.query_xml).parent)
        if arguments.times:
            with open(arguments.times, "a", encoding="utf-8") as file:
                print(*times(built, seconds), sep="\n", file=file)
    for line in tally(tests, broken):
        print(*line, sep="\t")


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
