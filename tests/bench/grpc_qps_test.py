#!/usr/bin/env -S python3 -B
"""Runs gRPC's benchmark over each transport, and makes a table of its
figures."""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = pathlib.Path("bench/grpc_qps/grpc_qps").absolute()
sys.path.insert(0, str(PROGRAM.resolve().parent))

import programs  # noqa: E402
import scenarios  # noqa: E402
import table  # noqa: E402


def run(*flags):
    return subprocess.run([PROGRAM, *flags], capture_output=True, text=True,
                          check=False)


def result(rate, cpu_s=1.0):
    used = [{"timeUser": cpu_s / 4, "timeSystem": cpu_s / 4}]
    return {"summary": {"latency50": 2000, "latency99": 9000, "qps": rate},
            "latencies": {"count": 100}, "clientStats": used,
            "serverStats": used}


class ProgramTest(unittest.TestCase):
    def test_each_transport_carries_calls_and_streams(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "all.json")
            done = run("--filter=^(unary-callback|from-client-async|"
                       "secure-unary-async)-0B-1x1$", "--rounds=1",
                       "--seconds=1", "--warmup=0", f"--json={path}")
            self.assertEqual(done.returncode, 0, done.stderr)
            said = json.loads(path.read_text(encoding="utf-8"))
        self.assertEqual(len(done.stdout.splitlines()), 2 + 3 * 3)
        self.assertEqual(len(said), 3 * 3)
        for cell in said:
            self.assertGreater(cell["summary"]["qps"], 0)
            self.assertTrue(all(cell["clientSuccess"]))
            if cell["scenario"]["name"].startswith("from-client"):
                self.assertGreater(cell["readPerSecond"], 0)

    def test_a_scenario_that_does_not_exist_is_an_error(self):
        self.assertNotEqual(run("--filter=pigeon").returncode, 0)
        self.assertNotEqual(run("--transports=pigeon").returncode, 0)

class PathTest(unittest.TestCase):
    LINE = "info penstock[1]: connection to ipv4:127.0.0.1:1: {} (and so on)\n"

    def test_each_channel_must_be_on_the_fabric(self):
        shm, http2 = self.LINE.format("shm"), self.LINE.format("http2")
        programs.check_path("shm", 2, shm + shm)
        programs.check_path(None, 2, "")
        for log in ("", shm, shm + http2, shm + shm + shm):
            with self.assertRaises(programs.CellFailed):
                programs.check_path("shm", 2, log)


class ScenariosTest(unittest.TestCase):
    def test_names_are_unique_and_the_quick_ones_exist(self):
        names = [scenario.name for scenario in scenarios.all_scenarios()]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(scenarios.QUICK), set(names))


class TableTest(unittest.TestCase):
    def test_ratios_are_those_of_the_same_round(self):
        stock, other = table.Figures(), table.Figures()
        for turn, (a, b) in enumerate([(100, 200), (1000, 1500), (10, 40)]):
            stock.add(turn, result(a))
            other.add(turn, result(b))
        lines = table.render({("x", "tcp"): stock,
                              ("x", "shm"): other}).splitlines()
        self.assertIn("2.00 (1.50-4.00)", lines[3])
        self.assertNotIn("(", lines[2])

    def test_one_way_streams_are_compared_by_what_was_read(self):
        stock, other = table.Figures(), table.Figures()
        stock.add(0, {**result(900), "readPerSecond": 100})
        other.add(0, {**result(300), "readPerSecond": 250})
        self.assertEqual(other.rates_of(stock), [2.5])

    def test_processor_time_is_that_of_both_sides(self):
        figures = table.Figures()
        figures.add(0, result(100, cpu_s=2.0))
        self.assertAlmostEqual(figures.medians()[4], 2.0 / 100 * 1e6)


if __name__ == "__main__":
    unittest.main()
