#!/usr/bin/python3 -B
"""Tests the launcher of examples/tensorflow, with programs that are no
TensorFlow."""

import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import types
import unittest

ROOT = pathlib.Path.cwd()
sys.path.insert(0, str(ROOT / "examples/tensorflow"))
import cluster  # noqa: E402 pylint: disable=wrong-import-position
import demo  # noqa: E402 pylint: disable=wrong-import-position

JOBS = {"chief": 1, "worker": 2}
# The beginning of each task's program, with `me` as "chief 0" and `addresses`
# of the cluster.
PRELUDE = """
import json, os, signal, sys
config = json.loads(os.environ["TF_CONFIG"])
me = "{type} {index}".format(**config["task"])
def wait():
    while True:
        signal.pause()
"""


def is_alive(pid):
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")")[-1]
    except OSError:
        return False
    return state.split()[0] != "Z"


class ClusterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def program(self, text):
        path = self.folder / "program.py"
        path.write_text(PRELUDE + textwrap.dedent(text))
        return str(path)

    def start(self, text, *arguments):
        tasks = cluster.Cluster(JOBS, "grpc+moon",
                                [self.program(text), *arguments],
                                self.folder / "logs")
        self.addCleanup(tasks.kill)
        return tasks

    def test_each_task_gets_its_configuration_and_arguments(self):
        tasks = self.start("""
            assert sys.argv[1:] == ["--flag"], sys.argv
            assert config["rpc_layer"] == "grpc+moon"
            if me != "chief 0":
                open(os.path.dirname(__file__) + "/" + me, "w").close()
                wait()
            print(json.dumps(config["cluster"]))
            """, "--flag")
        addresses = eval(tasks.next_line())  # pylint: disable=eval-used
        self.assertEqual(len(set(addresses["worker"] + addresses["chief"])), 3)
        self.wait_for((self.folder / "worker 0").exists)
        self.wait_for((self.folder / "worker 1").exists)
        descriptions = tasks.finish()
        self.assertEqual(set(descriptions), {"chief 0", "worker 0", "worker 1"})

    def test_leader_waits_at_each_line(self):
        tasks = self.start("""
            if me != "chief 0":
                wait()
            for number in range(3):
                print(number)
                open(os.path.dirname(__file__) + f"/{number}", "w").close()
            """)
        self.assertEqual(tasks.next_line(), "0")
        time.sleep(0.2)  # the task has time for a mistake
        self.assertFalse((self.folder / "0").exists())
        self.assertEqual(tasks.next_line(), "1")
        self.assertTrue((self.folder / "0").exists())
        self.assertEqual(tasks.next_line(), "2")
        tasks.finish()
        self.assertTrue((self.folder / "2").exists())

    def failure_of(self, text):
        tasks = self.start(text)
        with self.assertRaises(cluster.Failure) as raised:
            while True:
                tasks.next_line()
        return str(raised.exception)

    def test_task_that_died_is_named_with_the_end_of_its_log(self):
        failure = self.failure_of("""
            if me == "worker 1":
                print("many words\\n" * 1000 + "the last word")
                sys.exit(3)
            wait()
            """)
        self.assertIn("worker 1 exited with 3", failure)
        self.assertIn("the last word", failure)
        self.assertLess(failure.count("many words"), 50)

    def test_killed_task_is_seen_though_the_leader_goes_on(self):
        failure = self.failure_of("""
            if me == "worker 0":
                os.kill(os.getpid(), 9)
            while me == "chief 0":
                print("epoch")
            wait()
            """)
        self.assertIn("worker 0 was killed by signal 9", failure)

    def test_leader_that_fails_is_named(self):
        failure = self.failure_of("""
            if me == "chief 0":
                raise ValueError("no moon")
            wait()
            """)
        self.assertIn("chief 0 exited with 1", failure)
        self.assertIn("ValueError: no moon", failure)

    def test_leader_that_ends_early_is_a_failure(self):
        failure = self.failure_of("""
            if me != "chief 0":
                wait()
            """)
        self.assertIn("chief 0 ended early", failure)

    def test_silence_ends(self):
        self.addCleanup(setattr, cluster, "SILENCE_LIMIT_S",
                        cluster.SILENCE_LIMIT_S)
        cluster.SILENCE_LIMIT_S = 2
        self.assertIn("chief 0 has said nothing for 2 s",
                      self.failure_of("wait()"))

    def test_all_tasks_die_with_a_launcher_that_is_killed(self):
        program = self.program("""
            folder = os.path.dirname(__file__)
            open(f"{folder}/{os.getpid()}.pid", "w").close()
            if me == "chief 0":
                print("now it waits for its turn")
            wait()
            """)
        launcher = subprocess.Popen([
            sys.executable, "-B", "-c", textwrap.dedent(f"""
                import pathlib, signal, sys
                sys.path.insert(0, {str(ROOT / "examples/tensorflow")!r})
                import cluster
                cluster.Cluster({JOBS}, "grpc", [{program!r}],
                                pathlib.Path({str(self.folder / "logs")!r}))
                signal.pause()
                """)])
        self.addCleanup(launcher.wait)
        self.addCleanup(launcher.kill)
        self.wait_for(lambda: len(self.pids()) == 3)
        pids = self.pids()
        self.assertTrue(all(map(is_alive, pids)))
        launcher.send_signal(signal.SIGKILL)
        self.wait_for(lambda: not any(map(is_alive, pids)))

    def pids(self):
        return [int(each.stem) for each in self.folder.glob("*.pid")]

    def wait_for(self, condition):
        deadline = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)


def description(path, received, reason=""):
    return {"worker 0": {"servers": [{"routes": [
        {"address": "ps0:1", "path": path, "bytes_received": received,
         "reason": reason}]}]}}


class DemoTest(unittest.TestCase):
    def assert_fails(self, words, call, *arguments):
        with self.assertRaisesRegex(cluster.Failure, words):
            call(*arguments)

    def test_path_is_what_describe_says(self):
        self.assertEqual(
            demo.path_of(description("shm", 1234567890), demo.PENSTOCK),
            "shm")
        self.assertEqual(
            demo.path_of(description("tcp", 10**9, "no shm"), demo.PENSTOCK),
            "tcp (no shm)")

    def test_stock_path_is_a_failure(self):
        self.assert_fails("worker 0 .* ps0:1 over grpc: no plugin",
                          demo.path_of, description("grpc", 0, "no plugin"),
                          demo.PENSTOCK)

    def test_no_tensors_are_a_failure(self):
        for each in (description("shm", 0), {"worker 0": {"servers": []}}):
            self.assert_fails("no tensors went over Penstock",
                              demo.path_of, each, demo.PENSTOCK)

    def check(self, strategy, *results):
        demo.check(strategy, {
            protocol: types.SimpleNamespace(
                protocol=protocol, accuracy=accuracy, loss=loss)
            for protocol, (accuracy, loss) in zip(demo.PROTOCOLS, results)})

    def test_results_have_to_be_good_and_equal_where_they_can_be(self):
        self.check("ParameterServerStrategy", (0.96, 0.1), (0.97, 0.2))
        self.check("MultiWorkerMirroredStrategy", (0.96, 0.1), (0.96, 0.1))
        self.assert_fails(
            r"grpc\+penstock: accuracy is 94.00%", self.check,
            "ParameterServerStrategy", (0.96, 0.1), (0.94, 0.1))
        self.assert_fails(
            "differ", self.check,
            "MultiWorkerMirroredStrategy", (0.96, 0.1), (0.96, 0.1000001))


if __name__ == "__main__":
    unittest.main()
