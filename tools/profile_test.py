#!/usr/bin/env -S python3 -B
"""Tests the results of tools/profile for outputs of the profilers."""

import importlib.machinery
import importlib.util
import pathlib
import shutil
import subprocess
import tempfile
import unittest

from profile_parse import Profile, layer_of, read_callgrind, read_perf

TOOLS = pathlib.Path(__file__).parent
loader = importlib.machinery.SourceFileLoader("tools_profile",
                                              str(TOOLS / "profile"))
profile = importlib.util.module_from_spec(
    importlib.util.spec_from_loader(loader.name, loader))
loader.exec_module(profile)

# An output of callgrind. Names are written once and then numbered. Positions
# may be relative. Callees may be in another object. Inlined code has its own
# file.
CALLGRIND = """\
# callgrind format
version: 1
cmd:  /tmp/rpc --client-role --transports=shm --rpcs=5
desc: Trigger: Program termination
positions: line
events: Ir
summary: 1160

ob=(1) /usr/lib/libgrpc.so.29
fl=(1) ???
fn=(1) grpc_call
0 100
cob=(2) /tmp/rpc
cfi=(2) stream.cc
cfn=(2) penstock::core::Stream::Run()
calls=5 10
+3 900
* 10

ob=(2)
fl=(2)
fn=(2)
10 40
fi=(3) inlined.h
-2 10
fe=(2)
cfn=(3) penstock::wire::Take()'2
calls=2 7
11 50
cfn=(4) penstock::wire::Take()
calls=1 7
11 25

fn=(3)
7 600
fn=(4)
7 400
totals: 1160
"""
GRPC = ("grpc_call", "libgrpc.so.29")
RUN = ("penstock::core::Stream::Run()", "rpc")
TAKE = ("penstock::wire::Take()", "rpc")


class CallgrindTest(unittest.TestCase):

    def setUp(self):
        self.command, self.profile = read_callgrind(CALLGRIND.splitlines(True))

    def test_the_command_tells_the_side(self):
        self.assertIn("--client-role", self.command)

    def test_a_call_counts_for_the_function_that_is_called(self):
        self.assertEqual(self.profile.own, {GRPC: 110, RUN: 50, TAKE: 1000})

    def test_the_sum_is_callgrinds_own(self):
        self.assertEqual(self.profile.total(), 1160)

    def test_calls_are_counted_with_all_that_they_cost(self):
        self.assertEqual(dict(self.profile.calls), {
            (GRPC, RUN): [5, 900],
            # Expects that a recursive call counts for the same function.
            (RUN, TAKE): [3, 75],
        })
        self.assertEqual(self.profile.with_callees(TAKE), (3, 75))
        self.assertEqual(self.profile.with_callees(GRPC), (0, 0))

    def test_a_file_of_nothing_costs_nothing(self):
        self.assertEqual(read_callgrind([])[1].total(), 0)


class DifferenceTest(unittest.TestCase):

    def test_two_runs_are_subtracted_and_divided(self):
        _, more = read_callgrind(CALLGRIND.splitlines())
        _, few = read_callgrind(
            CALLGRIND.replace("7 600", "7 100").replace("5 10", "1 10")
            .splitlines())
        more.add(few, -1)
        one = more.over(4)
        self.assertEqual(one.own[TAKE], 125)
        self.assertEqual(one.own[GRPC], 0)
        self.assertEqual(one.calls[GRPC, RUN], [1, 0])

    def test_warming_up_is_counted_among_the_rpcs(self):
        self.assertEqual(profile.rpcs_made(300), 360)
        self.assertEqual(profile.rpcs_made(1), 2)


class PerfTest(unittest.TestCase):

    def test_a_sample_stands_for_its_period(self):
        text = ("# Samples: 4  of event 'cpu-clock:u'\n\n"
                " 92 \tlibc.so.6   \t[.] malloc   \n"
                " 8  \trpc  \t[.] penstock::wire::Take() [clone .cold]\n"
                " 2  \trpc  \t[.] penstock::wire::Take()\n")
        self.assertEqual(read_perf(text, 1000).own,
                         {("malloc", "libc.so.6"): 92000, TAKE: 10000})


class LayerTest(unittest.TestCase):

    def test_functions_belong_to_layers(self):
        self.assertEqual(layer_of(GRPC), "gRPC")
        self.assertEqual(layer_of(RUN), "Penstock, transport/grpc")
        self.assertEqual(layer_of(TAKE), "Penstock, below gRPC")
        self.assertEqual(layer_of(("x", "libgrpc++.so.1.51")),
                         "gRPC's C++ API")
        self.assertEqual(layer_of(("penstock::bench::Lane::Start()", "rpc")),
                         "the benchmark")

    def test_the_layers_add_up(self):
        _, whole = read_callgrind(CALLGRIND.splitlines())
        self.assertEqual(sum(whole.by_layer().values()), whole.total())


class NamesTest(unittest.TestCase):

    def test_templates_and_arguments_are_left_out(self):
        self.assertEqual(
            profile.shorten("a::(anonymous namespace)::B<c<d>, e>::F(int*) "
                            "const"), "a::B::F")
        self.assertEqual(profile.shorten("(below main)"), "(below main)")
        self.assertLessEqual(len(profile.shorten("x" * 200)), 76)


class CompareTest(unittest.TestCase):

    def test_a_ratio_without_its_divisor_is_a_dash(self):
        self.assertEqual(profile.part_of(50, 100, 6), "  0.50")
        self.assertEqual(profile.part_of(50, None, 6).strip(), "-")


class CommandTest(unittest.TestCase):

    def run_tool(self, *flags, path):
        return subprocess.run(
            [shutil.which("python3"), "-B", TOOLS / "profile", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            check=False, env={"PATH": path})

    def test_a_missing_profiler_is_named_with_the_remedy(self):
        with tempfile.TemporaryDirectory() as empty:
            run = self.run_tool(path=empty)
            self.assertEqual(run.returncode, 1)
            self.assertIn("Debian package valgrind", run.stdout)
            self.assertIn("tools/setup --profile", run.stdout)
            self.assertIn("linux-perf",
                          self.run_tool("--tool=perf", path=empty).stdout)

    def test_flags_that_do_not_go_together_are_refused(self):
        run = self.run_tool("--tool=perf", "--callers=malloc", path="/bin")
        self.assertEqual(run.returncode, 2)
        self.assertIn("--callers wants", run.stdout)


if __name__ == "__main__":
    unittest.main()
