#!/usr/bin/python3 -B
"""Tests the commands `penstock ps`, and `penstock top` with a parameter
server."""

import json
import os
import pathlib
import pty
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
import urllib.request

from penstock_test import PROGRAM, CommandTest, clean_environment, run

SERVER = os.environ.get("PARAMETER_SERVER", "tests/cli/parameter_server")
TRAINER = os.environ.get("TRAINER", "tests/ps/checkpoint/trainer")


class ServersTest(CommandTest):

    def server(self, training=7, tables=2, *flags):
        """Starts a server. Returns its address and its metrics' address."""
        server = subprocess.Popen(
            [SERVER, str(training), str(tables), *flags],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=clean_environment())
        for release in (server.stdout.close, server.wait, server.stdin.close):
            self.addCleanup(release)
        self.last_server = server
        ports = server.stdout.readline().split()
        return [f"127.0.0.1:{port}" for port in ports]

    def status(self, *arguments):
        return run("ps", "status", *arguments, "--timeout=30")


class StatusTest(ServersTest):

    def test_it_says_how_the_server_its_workers_and_its_tables_are(self):
        address, _ = self.server()
        done = self.status(address)
        self.check(done, 0)
        self.assertRegex(done.stdout, rf"\n{address} +serves +\d+ +2/2 ")
        # Expects the slow worker first.
        self.assertRegex(done.stdout, r"\n +1 +0 +3 *\n +0 +3 +0 *\n")
        self.assertRegex(done.stdout, r"\nkernel +dense ")
        self.assertRegex(done.stdout, r'\nus\\x1b\[31m"ers +sparse ')
        self.assertTrue(done.stdout.endswith("\nnothing\n"), done.stdout)

    def test_json_has_each_report_in_full(self):
        address, _ = self.server()
        done = self.status(address, "--json")
        self.check(done, 0)
        said = json.loads(done.stdout)
        self.assertEqual(said["problems"], [])
        server, = said["servers"]
        self.assertEqual(server["name"], address)
        self.assertEqual(server["run"], f"{7:016x}")
        self.assertEqual((server["pushes_counted"], server["has_values"]),
                         (3, True))
        self.assertEqual([(each["rank"], each["behind"])
                          for each in server["workers"]], [(0, 0), (1, 3)])
        kernel, users = server["tables"]
        self.assertEqual((kernel["rows"], kernel["type"]), (2, "dense"))
        self.assertEqual(users["name"], 'us\x1b[31m"ers')
        self.assertEqual(users["evicted_rows"], 0)

    def test_a_server_that_does_not_answer_is_a_problem(self):
        address, _ = self.server()
        done = self.status(address, "127.0.0.1:1")
        self.check(done, 1)
        self.assertRegex(done.stdout, r"\n127\.0\.0\.1:1 +no answer ")
        self.assertIn("nothing listens there", done.stdout)
        self.assertRegex(done.stdout, rf"\n{address} +serves ")

    def test_one_that_has_lost_its_model_is_a_problem(self):
        address, _ = self.server()
        empty, _ = self.server(training=0)
        done = self.status(empty, address)
        self.check(done, 1)
        self.assertRegex(done.stdout, rf"\n{empty} +no model ")
        self.assertRegex(done.stdout, rf"{empty} has no model, and {address}")

    def test_one_without_a_model_yet_is_none(self):
        empty, _ = self.server(training=0)
        done = self.status(empty)
        self.check(done, 0)
        self.assertIn("no model", done.stdout)

    def test_one_of_another_training_is_a_problem(self):
        (first, _), (second, _) = self.server(7), self.server(8)
        done = self.status(first, second)
        self.check(done, 1)
        self.assertIn(f"{second} is of another training than {first}",
                      " ".join(done.stdout.split()))

    def test_one_server_by_two_names_is_found(self):
        address, _ = self.server()
        done = self.status(address, address.replace("127.0.0.1", "localhost"))
        self.check(done, 1)
        self.assertIn("are both server 0", " ".join(done.stdout.split()))

    def test_a_server_of_another_kind_is_named_as_such(self):
        done = self.status(self.serve())
        self.check(done, 1)
        self.assertIn("no parameter server", done.stdout)

    def test_wrong_command_lines_are_refused(self):
        for arguments, said in [
                ([], "SERVER... is missing"),
                (["ps0"], "such as ps0:50051"),
                (["ps0:1", "--timeout=x"], "--timeout"),
                (["ps0:1", "--cert=x"], "--cert and --key belong together")]:
            with self.subTest(arguments):
                done = run("ps", "status", *arguments)
                self.check(done, 2)
                self.assertIn(said, done.stderr)

    def test_files_of_tls_that_are_not_there_are_named(self):
        done = self.status("ps0:1", "--ca=/no/ca", "--cert=/no/c", "--key=/k")
        self.check(done, 1)
        self.assertIn("/no/ca", done.stderr)


def write_secret(path, text):
    path.write_text(text)
    path.chmod(0o600)
    return path


class Authority:
    """Signs certificates in a folder, for 127.0.0.1 and a name."""

    def __init__(self, folder, name):
        self.folder = folder
        self.name = name
        self.run("req", "-x509", *self.new_key(name), "-days=1",
                 f"-out={folder}/{name}.pem", f"-subj=/CN={name}")

    def issue(self, name):
        """Returns the options with a certificate of NAME.test."""
        self.run("req", *self.new_key(name), f"-out={self.folder}/{name}.csr",
                 f"-subj=/CN={name}")
        names = pathlib.Path(self.folder, f"{name}.names")
        names.write_text(f"subjectAltName=DNS:{name}.test,IP:127.0.0.1\n")
        self.run("x509", "-req", f"-in={self.folder}/{name}.csr", "-days=1",
                 f"-CA={self.folder}/{self.name}.pem", "-CAcreateserial",
                 f"-CAkey={self.folder}/{self.name}.key", f"-extfile={names}",
                 f"-out={self.folder}/{name}.pem")
        return [f"--ca={self.folder}/{self.name}.pem",
                f"--cert={self.folder}/{name}.pem",
                f"--key={self.folder}/{name}.key"]

    def new_key(self, name):
        return ["-newkey=ec", "-pkeyopt=ec_paramgen_curve:P-256", "-nodes",
                f"-keyout={self.folder}/{name}.key"]

    @staticmethod
    def run(command, *options):
        parts = [part for option in options
                 for part in option.split("=", maxsplit=1)]
        subprocess.run(["openssl", command, *parts], check=True,
                       capture_output=True)


class CheckpointTest(ServersTest):
    """Tests penstock ps checkpoint, and who may call it."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.checkpoints = self.folder / "checkpoints"
        self.checkpoints.mkdir()

    def keeper(self, *flags, training=7):
        """Starts a server with a checkpoint folder. Returns its address."""
        return self.server(training, 2, f"--checkpoints={self.checkpoints}",
                           *flags)[0]

    def checkpoint(self, *arguments):
        return run("ps", "checkpoint", *arguments, "--timeout=30")

    def fails(self, done, said):
        """Asserts that the output is one line with the error, and no result."""
        self.check(done, 1)
        self.assertEqual(done.stdout, "")
        self.assertRegex(done.stderr, r"\Apenstock ps checkpoint: .*\n\Z")
        self.assertIn(said, done.stderr)
        # Expects that the text has the command's name only once, and no method
        # name of gRPC.
        self.assertNotRegex(done.stderr, "checkpoint: checkpoint|/penstock.ps")

    def test_servers_in_any_order_write_one_that_is_good(self):
        servers = [self.keeper("--servers=2", f"--server={i}")
                   for i in range(2)]
        done = self.checkpoint(*reversed(servers))
        self.check(done, 0)
        self.assertRegex(done.stdout,
                         r"\Acheckpoint of step 3: full, \d+ B\n"
                         r"the folder has 1 checkpoint with \d+ B\n\Z")
        self.assertEqual(done.stderr, "")
        verified = run("ps", "verify", str(self.checkpoints))
        self.check(verified, 0)
        said = json.loads(run("ps", "inspect", str(self.checkpoints),
                              "--json").stdout)
        self.assertEqual([each["step"] for each in said["checkpoints"]], [3])
        status = json.loads(self.status(*servers, "--json").stdout)
        self.assertEqual([each["last_checkpoint_step"]
                          for each in status["servers"]], [3, 0])

    def test_json_says_the_same_and_the_metrics_have_the_step(self):
        server, metrics = self.server(7, 2,
                                      f"--checkpoints={self.checkpoints}")
        done = self.checkpoint(server, "--json", "--incremental", "--keep=2")
        self.check(done, 0)
        said = json.loads(done.stdout)
        self.assertEqual((said["step"], said["incremental"],
                          said["removed_steps"]), (3, False, []))
        self.assertGreater(said["bytes"], 0)
        with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
            self.assertIn("\npenstock_ps_last_checkpoint_step 3\n",
                          answer.read().decode())

    def test_on_a_terminal_a_bar_shows_how_much_is_written(self):
        server = self.keeper("--hold")
        terminal, screen = pty.openpty()
        command = subprocess.Popen(
            [PROGRAM, "ps", "checkpoint", server], stdout=subprocess.PIPE,
            stderr=screen, text=True, env=clean_environment())
        os.close(screen)
        shown = ""
        with open(terminal, "rb", buffering=0) as terminal, command:
            end = time.monotonic() + 60  # the bar is drawn again and again
            while "100% of 24 B" not in shown:  # six f32, and no rows
                self.assertLess(time.monotonic(), end, shown)
                shown += terminal.read(4096).decode()
            self.last_server.stdin.write("\n")
            self.last_server.stdin.flush()
            result = command.stdout.read()
            shown += terminal.read(4096).decode()
        self.assertEqual(command.returncode, 0)
        self.assertRegex(result, r"\Acheckpoint of step 3: full, \d+ B\n")
        # Expects the bar below the earlier lines, and its removal in the end.
        self.assertRegex(shown, r"\Astep 3: writes all of it\r\n\r\[#{40}\]")
        self.assertRegex(shown, r"\r\x1b\[Kstep 3: done, \d+ B\r\n\Z")

    def test_ctrl_c_before_the_servers_answer_ends_the_command(self):
        with socket.create_server(("127.0.0.1", 0)) as silent:
            silent.settimeout(120)
            command = subprocess.Popen(
                [PROGRAM, "ps", "checkpoint",
                 f"127.0.0.1:{silent.getsockname()[1]}", "--timeout=60"],
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=clean_environment())
            silent.accept()[0].close()
            command.send_signal(signal.SIGINT)
            self.assertEqual(command.wait(timeout=120), -signal.SIGINT)

    def test_ctrl_c_ends_a_checkpoint_that_is_being_written(self):
        server = self.keeper("--hold")
        terminal, screen = pty.openpty()
        command = subprocess.Popen(
            [PROGRAM, "ps", "checkpoint", server], stdout=subprocess.DEVNULL,
            stderr=screen, env=clean_environment())
        os.close(screen)
        self.addCleanup(command.wait)
        self.addCleanup(command.kill)
        shown = ""
        with open(terminal, "rb", buffering=0) as terminal:
            while "100% of 24 B" not in shown:
                shown += terminal.read(4096).decode()
            command.send_signal(signal.SIGINT)
            self.assertEqual(command.wait(timeout=120), 1)
        self.last_server.stdin.write("\n")
        self.last_server.stdin.flush()
        self.check(self.checkpoint(server), 0)

    def test_without_a_step_since_the_last_one_there_is_none(self):
        server = self.keeper()
        self.check(self.checkpoint(server), 0)
        self.fails(self.checkpoint(server), "no step was taken since")

    def test_a_failure_is_a_problem_until_there_is_a_good_one(self):
        server = self.keeper()
        shutil.rmtree(self.checkpoints)
        self.fails(self.checkpoint(server), "is gone")
        status = self.status(server)
        self.check(status, 1)
        self.assertRegex(
            " ".join(status.stdout.split()),
            r"What is wrong .*: checkpoints fail, 1 in a row: .* is gone.*; "
            r"this server has completed none$")
        self.checkpoints.mkdir()
        self.check(self.checkpoint(server), 0)
        self.check(self.status(server), 0)

    def test_a_server_without_a_folder_names_the_flag(self):
        address, _ = self.server()
        self.fails(self.checkpoint(address), "--checkpoints=DIR")

    def test_no_server_and_one_without_a_model_are_named(self):
        self.fails(self.checkpoint("127.0.0.1:1"),
                   "cannot reach 127.0.0.1:1: nothing listens there")
        empty = self.keeper(training=0)
        self.fails(self.checkpoint(empty), f"{empty} has no model yet")

    def test_one_that_was_started_anew_or_is_missing_is_named(self):
        first = self.keeper("--servers=2")
        restarted = self.keeper("--servers=2", "--server=1", training=0)
        self.fails(self.checkpoint(first, restarted),
                   f"{restarted} has no model, and {first} has one")
        self.fails(self.checkpoint(first),
                   f"{first} is one of 2 servers of a training, and 1 was")
        other = self.keeper("--servers=2", "--server=1", training=8)
        self.fails(self.checkpoint(first, other), "is of another training")

    def test_by_a_secret(self):
        right = write_secret(self.folder / "right", "x" * 44)
        wrong = write_secret(self.folder / "wrong", "y" * 44)
        server = self.keeper(f"--secret={right}")
        self.check(self.status(server, f"--secret={right}"), 0)
        self.check(self.checkpoint(server, f"--secret={right}"), 0)
        for command in self.status, self.checkpoint:
            for flags in [], [f"--secret={wrong}"]:
                with self.subTest([command.__name__, *flags]):
                    done = command(server, *flags)
                    self.check(done, 1)
                    said = " ".join((done.stdout + done.stderr).split())
                    self.assertIn(f"{server} refuses to answer: ", said)
                    self.assertIn("--secret=FILE", said)
                    self.assertNotIn("yyyy", said)
        wrong.chmod(0o644)
        self.fails(self.checkpoint(server, f"--secret={wrong}"), "chmod 600")
        self.fails(self.checkpoint(server, "--secret=/no/file"), "/no/file")

    def test_by_certificates_and_permissions(self):
        ours = Authority(self.folder, "ours")
        chief, reader = ours.issue("chief"), ours.issue("reader")
        others = Authority(self.folder, "others").issue("stranger")
        rules = write_secret(self.folder / "rules",
                             "administer dns:chief.test\n"
                             "read dns:reader.test\n")
        server = self.keeper(*ours.issue("server"), f"--access={rules}")
        self.check(self.status(server, *reader), 0)
        self.fails(self.checkpoint(server, *reader),
                   "administer: refused to dns:reader.test")
        self.fails(self.checkpoint(server, *others),
                   "the server's certificate is not trusted")
        self.fails(self.checkpoint(server), "if the server uses TLS, give --tls or --ca=FILE")
        authority = [flag for flag in chief if flag.startswith("--ca=")]
        self.fails(self.checkpoint(server, *authority),
                   "if the server asks for certificates, give --cert=FILE and --key=FILE")
        self.check(self.checkpoint(server, *chief), 0)
        plain = self.keeper()
        self.fails(self.checkpoint(plain, *chief), "does not speak TLS")


class MetricsTest(ServersTest):

    def test_the_port_shows_the_servers_figures(self):
        _, metrics = self.server()
        with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
            text = answer.read().decode()
        for line in ("penstock_ps_ready 1", "penstock_ps_workers 2",
                     "penstock_ps_slowest_worker_behind 3",
                     'penstock_ps_pushes_total{verdict="counted"} 3',
                     'penstock_ps_table_rows{table="kernel",type="dense"} 2'):
            self.assertIn(f"\n{line}\n", text)
        self.assertIn('table="us\x1b[31m\\"ers"', text)
        self.assertIn("\npenstock_sessions{", text)

    def test_thousands_of_tables_are_bounded(self):
        _, metrics = self.server(tables=1200)
        with urllib.request.urlopen(f"http://{metrics}/metrics") as answer:
            text = answer.read().decode()
        self.assertIn("\npenstock_ps_tables_left_out 200\n", text)
        self.assertEqual(len(re.findall(r"\npenstock_ps_table_bytes{", text)),
                         1000)

    def test_top_shows_the_tables(self):
        _, metrics = self.server()
        done = run("top", metrics, "--count=1", "--interval=100ms")
        self.check(done, 0)
        self.assertRegex(done.stdout, r"Parameter server\nserving, version ")
        self.assertRegex(done.stdout, r"\nkernel +dense +\d")


class CheckpointsTest(CommandTest):

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        subprocess.run([TRAINER, cls.folder, "-1"], check=True,
                       capture_output=True)

    def steps(self):
        done = run("ps", "inspect", self.folder, "--json")
        self.check(done, 0)
        return [each["step"] for each in json.loads(done.stdout)["checkpoints"]]

    def test_inspect_lists_them_the_newest_first(self):
        steps = self.steps()
        self.assertGreater(len(steps), 1)
        self.assertEqual(steps, sorted(steps, reverse=True))
        done = run("ps", "inspect", self.folder)
        self.check(done, 0)
        *checkpoints, total = done.stdout.splitlines()
        self.assertEqual(len(checkpoints), len(steps))
        self.assertRegex(total, r"\Atogether: ")

    def test_inspect_tells_what_is_in_one(self):
        step = self.steps()[0]
        done = run("ps", "inspect", self.folder, f"--step={step}")
        self.check(done, 0)
        self.assertRegex(done.stdout, r"\n  \w+: (dense|sparse) ")

    def test_verify_reads_the_newest_one_without_a_bar_where_no_terminal_is(self):
        done = run("ps", "verify", self.folder)
        self.check(done, 0)
        self.assertRegex(done.stdout, rf"\Astep-0*{self.steps()[0]}: good, ")
        self.assertEqual(done.stderr, "")

    def test_damage_is_found_and_sets_the_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(["cp", "-r", f"{self.folder}/.", folder], check=True)
            step = self.steps()[0]
            shard = max(pathlib.Path(folder, f"step-{step:010}").iterdir(),
                        key=lambda path: path.stat().st_size)
            content = bytearray(shard.read_bytes())
            content[len(content) // 3] ^= 1
            shard.write_bytes(content)
            done = run("ps", "verify", folder, "--json")
            self.check(done, 1)
            said = json.loads(done.stdout)
            self.assertEqual((said["step"], said["good"]), (step, False))
            self.assertEqual(run("ps", "verify", folder).returncode, 1)

    def test_what_is_not_there_is_an_error(self):
        for arguments, said in [(["/no/folder"], "/no/folder"),
                                ([self.folder, "--step=987654"], "987654")]:
            for command in ("inspect", "verify"):
                with self.subTest([command, *arguments]):
                    done = run("ps", command, *arguments)
                    self.check(done, 1)
                    self.assertIn(said, done.stderr)
                    self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
