#!/usr/bin/env -S python3 -B
"""Tests the parsing and the results of bench/verbs/verbs_bench."""

import contextlib
import importlib.machinery
import importlib.util
import io
import os
import pathlib
import subprocess
import tempfile
import unittest
from unittest import mock

import verbs_bench_guest as guest

FOLDER = pathlib.Path(__file__).parent
loader = importlib.machinery.SourceFileLoader("verbs_bench",
                                              str(FOLDER / "verbs_bench"))
verbs_bench = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(verbs_bench)

# The output of perftest 4.5, from the first rule to the last.
SEND_LAT = """\
 #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]
 8       200          110.25         190.50       112.75     \t       115.00
"""
SEND_BW = """\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 1048576    40             0.00               100.00             0.000100
"""
PERF = """\
# To display the perf.data header info
    40.00%\t400\trpc\t[.] penstock::session::Session::Flush
    10.00%\t100\trpc\t[.] penstock::bench::Call
    20.00%\t200\t[kernel.kallsyms]\t[k] rxe_requester
    20.00%\t200\t[kernel.kallsyms]\t[k] native_safe_halt
    10.00%\t100\tlibgrpc.so.29\t[.] grpc_call_start_batch
"""


def samples(**changed):
    """Returns a measurement whose figures can be checked by hand."""
    figures = {"send_lat 8": [100.0]}
    for size in (64 << 10, 1 << 20):
        figures[f"send_bw {size}"] = [80.0]
        figures[f"read_bw {size}"] = [100.0]
    for api in verbs_bench.APIS:
        figures.update({f"this inproc {api} 8": [300.0],
                        f"this tcp {api} 8": [900.0],
                        f"this verbs {api} 8": [625.0]})
    figures.update({"this inproc async 1048576": [5_000.0],
                    "this tcp async 1048576": [60_000.0],
                    "this verbs async 1048576": [30_000.0]})
    for benchmark in ("bandwidth", "stream"):
        figures.update({f"this inproc {benchmark}": [400.0],
                        f"this tcp {benchmark}": [20.0],
                        f"this verbs {benchmark}": [80.0]})
    return {**figures, **changed}


class ReportTest(unittest.TestCase):

    def print(self, function, *arguments):
        with contextlib.redirect_stdout(io.StringIO()) as out:
            function(*arguments)
        return out.getvalue()

    def test_ours_is_what_neither_grpc_nor_the_device_takes(self):
        ours, share = verbs_bench.Report(samples()).small("this", "sync")
        self.assertAlmostEqual(ours, 625 - 300 - 2 * 100)
        self.assertAlmostEqual(share, 125 / 625)

    def test_large_messages_are_shares_of_the_better_device_figure(self):
        shares = verbs_bench.Report(samples()).large("this")
        self.assertAlmostEqual(shares["stream"], 80 / 100)
        # expected: 1 / (1/80 - 1/400) MB/s
        self.assertAlmostEqual(
            shares["stream, without the application's work"], 1.0)
        self.assertAlmostEqual(
            shares["four RPCs outstanding, both directions"], 1.6)
        self.assertAlmostEqual(shares["one RPC at a time, both directions"],
                               2 * (1 << 20) / 30_000 / 100)

    def test_a_line_has_the_median_and_half_the_spread(self):
        report = verbs_bench.Report({"a": [90.0, 100.0, 120.0], "b": []})
        self.assertRegex(self.print(report.line, "title", "a", "us"),
                         r"title +100\.0 us +\+-15\.00 %")
        self.assertRegex(self.print(report.line, "title", "b", "us"),
                         "title +failed")

    def test_instructions_follow_from_the_clock(self):
        text = self.print(verbs_bench.Report(samples()).figures, "this")
        # Expects 62.5 us a message, which are 31,250 instructions of 2 ns.
        self.assertRegex(text, r"sync +125\.0 us +=\s+20\.0%, 31,250 instr")

    def test_commits_are_compared_where_both_have_a_figure(self):
        report = verbs_bench.Report({"this a": [10.0], "base a": [8.0],
                                     "this b": [1.0]})
        text = self.print(report.compare)
        self.assertRegex(text, r"a +1\.250")
        self.assertNotIn("  b", text)

    def test_samples_of_a_profile_are_counted_by_layer(self):
        counts = verbs_bench.count_samples(PERF)
        self.assertEqual(dict(counts), {
            "Penstock": 400, "the benchmark": 100,
            "kernel, with the device": 200, "idle": 200, "gRPC": 100})

    def test_a_figure_that_is_missing_is_named(self):
        few = samples()
        del few["send_lat 8"]
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            (work / "built").touch()
            arguments = mock.Mock(program=work / "built", compare=None,
                                  repeats=1, rpcs=40, profile=False, json=None,
                                  tensors=False)
            doubled = {name: value * 2 for name, value in few.items()}
            with mock.patch.object(verbs_bench, "boot", return_value=doubled), \
                    contextlib.redirect_stdout(io.StringIO()), \
                    self.assertRaises(SystemExit) as ended:
                verbs_bench.measure(arguments, work)
        self.assertIn("send_lat 8", str(ended.exception.code))


    def test_a_step_is_a_share_of_the_device_and_instructions_a_mib(self):
        figures = {"read_bw 1048576": [40.0]}
        for model in guest.MODELS:
            figures.update({f"{model} bytes": [100e6],
                            f"{model} handed": [2_500_000.0 * 1.25],
                            f"{model} read": [5_000_000.0]})
        text = self.print(verbs_bench.Report(figures).tensors)
        # expected: 32 and 20 MB/s of 40; 3.125 s of 2 ns each for 100 MB
        self.assertRegex(text, r"32\.0 MB/s = 80\.0%, 16,384,000 instr")
        self.assertRegex(text, r"20\.0 MB/s = 50\.0%")
        self.assertEqual(text.count("resnet50"), 2)


TENSORS = """\
info penstock[1]: connection to x: verbs (rxe0/1, windows for a test: reads)
resnet50: 161 tensors, 102.23 MB
                 handed over, us   every byte read, us  answered, us  faults
verbs-pool    3793900 (3793900-3793900)3851730 (3851730-3851730)  9 (9-9)  434
"""


class GuestTest(unittest.TestCase):

    def test_a_step_is_read_from_the_table(self):
        with mock.patch.object(guest, "run", return_value=TENSORS):
            self.assertEqual(guest.tensors("tensors", "resnet50", 2),
                             (102.23e6, 3793900.0, 3851730.0))

    def test_a_step_that_was_staged_is_no_figure(self):
        staged = TENSORS.replace("windows for a test", "staged")
        with mock.patch.object(guest, "run", return_value=staged), \
                self.assertRaises(RuntimeError):
            guest.tensors("tensors", "resnet50", 2)

    def perftest(self, text, *arguments):
        with mock.patch.object(guest, "run", return_value=text), \
                mock.patch.object(guest, "listens", return_value=True), \
                mock.patch.object(guest.subprocess, "Popen"):
            return guest.perftest(*arguments)

    def test_latency_is_the_typical_one_in_microseconds(self):
        self.assertEqual(self.perftest(SEND_LAT, "ib_send_lat", 8, 200),
                         112.75)

    def test_bandwidth_is_the_average_in_decimal_megabytes(self):
        self.assertAlmostEqual(
            self.perftest(SEND_BW, "ib_send_bw", 1 << 20, 40), 104.8576)

    def test_a_program_that_fails_costs_its_cells_only(self):
        with contextlib.redirect_stderr(io.StringIO()) as said:
            self.assertEqual(guest.rpc("/bin/false", sizes=8), {})
        self.assertIn("FAILED: --sizes=8", said.getvalue())

    def test_the_first_repeat_is_one_more(self):
        with tempfile.TemporaryDirectory() as folder:
            plan = {"small": 8, "large": 4, "repeats": 2, "profile": False,
                    "programs": {"this": "rpc"}, "files": []}
            out = pathlib.Path(folder, "samples.json")
            runner = guest.Guest(plan, out)
            with mock.patch.object(guest, "route_over_the_cable"), \
                    mock.patch.object(guest, "warm_up"), \
                    mock.patch.object(guest, "perftest", return_value=1.0), \
                    mock.patch.object(guest, "rpc", return_value={
                        ("verbs", "sync", 8): {"p50_us": 3.0,
                                               "mb_per_s": 4.0}}), \
                    mock.patch.dict(os.environ), \
                    contextlib.redirect_stderr(io.StringIO()):
                runner.measure()
            figures = verbs_bench.json.loads(out.read_text())
        self.assertEqual(figures["send_lat 8"], [1.0] * 3)
        self.assertEqual(figures["this verbs sync 8"], [3.0] * 3)
        self.assertEqual(figures["this verbs stream"], [4.0] * 3)


class CommandTest(unittest.TestCase):

    def test_an_unknown_flag_ends_it_before_anything_is_built(self):
        result = subprocess.run([FOLDER / "verbs_bench", "--nosuch"],
                                stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True,
                                check=False)
        self.assertEqual(result.returncode, 2)
        self.assertIn("unrecognized arguments: --nosuch", result.stdout)


if __name__ == "__main__":
    unittest.main()
