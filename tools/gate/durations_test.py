#!/usr/bin/env -S python3 -B
"""Tests durations.py on profiles as Bazel 4.2 writes them."""

import contextlib
import gzip
import io
import json
import pathlib
import tempfile
import unittest

import durations

ACTIONS = [
    ("Compiling transport/base/log.cc", 3.0),
    ("Compiling tests/transport/base/log_test.cc", 5.0),
    ("Compiling test/cpp/qps/benchmark_config.cc", 1.0),
    ("Compiling bench/latest/contest.cc", 2.0),
    ("Precompiling tests/precompiled/grpc_headers.h", 11.0),
    ("Linking transport/base/liblog.a", 0.5),
    ("Linting ps/client/pull.cc", 8.0),
    ("Testing //tests/e2e/paths:keepalive_test", 20.0),
    ("Writing file x.params", 0.1),
]


def profile_of(actions, cached=()):
    """Returns a profile's text, on one lane, one action after another."""
    lines = ['{"otherData":{"build_id":"1"},"traceEvents":[',
             '    {"name":"thread_name","ph":"M","pid":1,"tid":0,"args":{}},']
    now = 1000
    for name, seconds in actions:
        event = {"cat": "action processing", "name": name, "ph": "X",
                 "ts": now, "dur": int(seconds * 1e6), "pid": 1, "tid": 7}
        lines.append("    " + json.dumps(event) + ",")
        if name not in cached:
            run = {**event, "cat": "local action execution", "name": "Run",
                   "ts": now + 10, "dur": event["dur"] - 20}
            lines.append("    " + json.dumps(run) + ",")
        now += event["dur"]
    lines[-1] = lines[-1].rstrip(",")
    return "\n".join(lines + ["  ]", "}"])


def seconds_by_kind(entries):
    found = {}
    for entry in entries:
        found[entry.kind] = found.get(entry.kind, 0) + entry.seconds
    return found


class GateProfileTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.path = pathlib.Path(folder.name, "profile.gz")

    def read(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            entries = durations.read_profile(self.path)
        return entries, said.getvalue()

    def test_each_action_has_its_kind(self):
        self.path.write_bytes(gzip.compress(profile_of(ACTIONS).encode()))
        self.assertEqual(seconds_by_kind(self.read()[0]), {
            "compile, production": 5.0,
            "compile, tests": 6.0,
            "precompiled headers": 11.0,
            "link": 0.5,
            "lint": 8.0,
            "running tests": 20.0,
            "other actions": 0.1,
        })

    def test_a_precompiled_header_is_known_by_its_mnemonic_too(self):
        self.assertEqual(
            durations.kind_of("Compiling x.h", "PrecompiledHeader"),
            "precompiled headers")

    def test_results_from_the_cache_are_counted_apart(self):
        events = durations.parse_events(profile_of(
            ACTIONS[:2], cached=[ACTIONS[0][0]]))
        self.assertEqual([entry.cached
                          for entry in durations.entries_of(events)],
                         [True, False])

    def test_a_missing_profile_is_named_and_left_out(self):
        entries, said = self.read()
        self.assertEqual(entries, [])
        self.assertIn("profile.gz", said)

    def test_a_truncated_profile_gives_its_whole_lines(self):
        many = [(f"Testing //t:{number}", 1 + number / 7)
                for number in range(2000)]
        whole = gzip.compress(profile_of(many).encode())
        for size in range(0, len(whole), len(whole) // 50):
            self.path.write_bytes(whole[:size])
            entries, _ = self.read()
            self.assertLessEqual(len(entries), len(many))
            self.assertEqual([entry.name for entry in entries],
                             [name for name, _ in many[:len(entries)]])
        self.assertGreater(len(entries), 1500)

    def test_damaged_profiles_are_survived(self):
        whole = gzip.compress(profile_of(ACTIONS).encode())
        for data in b"", b"no gzip", whole[:40] + b"\0" * 40 + whole[80:]:
            self.path.write_bytes(data)
            self.read()

    def test_measured_steps_are_read_and_malformed_lines_are_not(self):
        self.assertEqual(
            durations.parse_times(["set-up\ttools/setup\t1.5\n", "x\n",
                                      "VM\t//t:a\tsoon\n"]),
            [("set-up", "tools/setup", 1.5, False)])

    def test_the_report_lists_the_most_expensive_first(self):
        many = [("Testing //t:%02d" % number, number)
                for number in range(1, 31)]
        lines = durations.report(
            durations.entries_of(durations.parse_events(
                profile_of(many))) +
            durations.parse_times(["step\ttests\t61\n"]))
        self.assertIn("      61.0  tests", lines)
        self.assertIn("running tests              465.0 lane      30      0",
                      lines)
        named = [line.split()[-1] for line in lines if "//t:" in line]
        self.assertEqual(named, ["//t:%02d" % number
                                 for number in range(30, 10, -1)])


if __name__ == "__main__":
    unittest.main()
