#!/usr/bin/python3 -B
"""Tests the command `penstock` as its users see it: output, JSON, exit codes.

Run it with Debian's python3, whose python3-grpcio this needs.
"""

import concurrent.futures
import fcntl
import json
import os
import pty
import re
import resource
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import termios
import threading
import time
import unittest

import grpc

PROGRAM = os.environ.get("PENSTOCK", "cli/penstock")
LIMIT = 60  # seconds; sanitizers are slow
ESCAPE = "\x1b["


def run(*arguments, env=None, **options):
    """Runs penstock until it ends. Returns the result of subprocess.run()."""
    options.setdefault("stdout", subprocess.PIPE)
    return subprocess.run([PROGRAM, *arguments], text=True, timeout=LIMIT,
                          stderr=subprocess.PIPE,
                          env={**clean_environment(), **(env or {})},
                          **options)


def clean_environment():
    return {name: value for name, value in os.environ.items()
            if not name.startswith(("PENSTOCK_", "GRPC_"))}


def state_of(process):
    """Returns "R" for a running process, and "S" for a waiting process."""
    with open(f"/proc/{process}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]


class CommandTest(unittest.TestCase):

    def check(self, done, code):
        self.assertEqual(done.returncode, code, (done.stdout, done.stderr))
        for text in (done.stdout or "", done.stderr):
            # Checks that the output has no stack trace, no log of gRPC or
            # Penstock, and no colours.
            self.assertNotRegex(text, r"terminate called|\.cc:\d|" + "\x1b")

    def serve(self, *arguments, port=0, env=None):
        """Starts `penstock serve`. Returns its address. `arguments` must have
        a port if `port` is None."""
        ports = [] if port is None else [f"--port={port}"]
        server = subprocess.Popen(
            [PROGRAM, "serve", "--json", *ports, *arguments],
            stdout=subprocess.PIPE, text=True,
            env={**clean_environment(), **(env or {})})
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        self.server = server
        return json.loads(server.stdout.readline())["address"]


class UsageTest(CommandTest):

    def commands(self):
        listed = re.search(r"^Commands\n((?:  .*\n)+)", run("--help").stdout,
                           re.MULTILINE)[1]
        return re.findall(r"^  (\w+)", listed, re.MULTILINE)

    def test_help_of_each_command_has_examples_that_name_it_and_exit_codes(self):
        self.assertIn("doctor", self.commands())
        for command in self.commands():
            done = run(command, "--help")
            self.check(done, 0)
            self.assertIn(f"Usage: penstock {command}", done.stdout)
            self.assertRegex(done.stdout, rf"\Apenstock {command}: \w")
            if "COMMAND" in done.stdout:  # a command with subcommands
                continue
            self.assertRegex(done.stdout, rf"Examples\n  penstock {command}")
            for code in "012":
                self.assertRegex(done.stdout, rf"\n  {code}  \w")
            self.assertLessEqual(max(map(len, done.stdout.splitlines())), 80)

    def test_without_a_command_it_shows_help(self):
        done = run()
        self.check(done, 2)
        self.assertIn("Commands", done.stdout)

    def test_wrong_command_lines_are_refused_with_what_to_do(self):
        for arguments, said in [
                (["doctr"], "did you mean penstock doctor?"),
                (["pnig"], "did you mean penstock ping?"),
                (["xyz"], 'there is no command "xyz"'),
                ([""], 'there is no command ""'),
                (["version"], "did you mean penstock --version?"),
                (["doctor", "--bogus"], 'there is no option "--bogus"'),
                (["doctor", "--bref"], "did you mean penstock doctor --brief?"),
                (["ping", "a:1", "--coun=3"], "penstock ping --count?"),
                (["doctor", "\x1b[2J:1", "--bogus"], "--bogus"),
                (["\x1b[2J"], "\\x1b[2J"),
                (["ping", "a:1", "b:1"], '"b:1" is one argument too many'),
                (["ping"], "TARGET is missing: penstock ping [OPTIONS] TARGET"),
                (["ps"], "which command?"),
                (["ps", "x"], 'there is no command "x"'),
                (["completion"], "SHELL is missing"),
                (["doctor", "--json=x"], "--json takes no value"),
                (["doctor", "--json=0"], "--json takes no value"),
                (["ping", "a:1", "--flood=3"], "--flood takes no value"),
                (["doctor", "--timeout"], "--timeout needs a value: --timeout="),
                (["ping", "a:1", "--count="], "--count needs a value: --count=N"),
                (["ping", "a:1", "-c1", "-c2"], "--count is given more than once"),
                (["ping", "a:1", "--count=1.5"], '"1.5" is no whole number'),
                (["serve", "--port=abc"], '--port: "abc" is no whole number'),
                (["top", ":80"], "127.0.0.1:80"),
                (["top", "x"], "neither the PID of a process nor HOST:PORT"),
                (["ping", "localhost"], "localhost:50051"),
                (["ping", "a:0"], "not 1 to 65535: use HOST:PORT, such as a:5"),
                (["ping", "a:99999"], "not 1 to 65535"),
                (["ping", "[::1]"], "such as [::1]:50051"),
                (["ping", "::1:50051"], "IPv6 address without brackets"),
                (["ping", "http://a:1"], "is a URL"),
                (["ping", ""], "TARGET is empty: penstock ping"),
                (["ping", ":1"], "has no host"),
                (["doctor", ""], "TARGET is empty"),
                (["top", ""], "WHERE is empty"),
                (["ps", "status", "a:1", ""], "SERVER... is empty"),
                (["ping", "--fabrics=", "a:1"], "--fabrics needs a value"),
                (["ping", "--fabrics", "", "a:1"], "--fabrics needs a value"),
                (["ping", "--ca=", "--count=1", "a:1"], "--ca needs a value"),
                (["doctor", "--timeout=", "a:1"], "--timeout needs a value"),
                (["serve", "--listen=", "--port=0"], "--listen needs a value"),
                (["serve", "--cert=", "--key=", "--port=0"], "--cert needs a"),
                (["ps", "verify", "--step=", "/"], "--step needs a value"),
                (["ping", "a:1", "--json="], "--json takes no value"),
                (["help", "pnig"], "did you mean penstock ping?"),
                (["help", "ps", "x"], 'there is no command "x"'),
                (["help", "ping", "x"], '"x" is one argument too many'),
                (["pnig", "--help"], "did you mean penstock ping?"),
                (["ps", "x", "-h"], 'there is no command "x"'),
                (["ping", "a:1", "--server-name=b"], "--tls"),
                (["ping", "a:1", "--count=0"], "--count"),
                (["ping", "a:1", "--count=-1"], "--count"),
                (["ping", "a:1", "--count=x"], "--count"),
                (["ping", "a:1", "--sizes=8,x"], "--sizes"),
                (["ping", "a:1", "--sizes=1GiB"], "256 MiB"),
                (["ping", "a:1", "--interval=-1"], "--interval"),
                (["ping", "a:1", "--timeout=0"], "--timeout"),
                (["ping", "a:1", "--fabrics=shm,x"], "shm, verbs and tcp"),
                (["ping", "a:1", "--fabrics=shm,shm"], "twice"),
                (["ping", "a:1", "--cert=x"], "--key"),
                (["serve", "--port=65536"], "--port"),
                (["serve", "--listen", ""], "--listen needs a value"),
                (["serve", "--listen=:7000"], "has no address"),
                (["serve", "--listen=a:70000"], "not 0 to 65535"),
                (["serve", "--listen=a:"], "not 0 to 65535"),
                (["serve", "--listen=a:-1"], "not 0 to 65535"),
                (["serve", "--listen=unix:/tmp/x"], "not 0 to 65535"),
                (["serve", "--listen=[::1"], "closing bracket"),
                (["serve", "--listen=[a]:1"], "no IPv6 address in brackets"),
                (["serve", "--listen=[::1]7"], "not 0 to 65535"),
                (["serve", "--listen=http://a:1"], "is no address"),
                (["serve", "--listen=1:2:3"], "is no address"),
                (["serve", "--listen=a b"], "is no address"),
                (["serve", "--listen=\x1b[2J"], "is no address"),
                (["serve", "--listen=a:1", "--port=1"], "leave out --port"),
                (["serve", "--ca=x"], "--cert")]:
            with self.subTest(arguments):
                done = run(*arguments)
                self.check(done, 2)
                self.assertEqual(done.stdout, "")
                self.assertIn(said, done.stderr)
                self.assertIn("--help", done.stderr)

    def test_help_is_a_command_too(self):
        for words in [], ["ping"], ["ps", "serve"]:
            self.assertEqual(run("help", *words).stdout,
                             run(*words, "--help").stdout)
        self.check(run("help", "ping"), 0)
        self.assertEqual(run("help", "help").stdout, run("--help").stdout)
        # Expects that help does not run the program that follows.
        self.assertEqual(run("help", "run", "echo", "x").stdout,
                         run("run", "--help").stdout)

    def test_what_a_command_is_given_is_apart_from_its_options(self):
        said = run("ping", "--help").stdout
        self.assertRegex(said, r"\nArguments\n  TARGET  the server")
        self.assertNotIn("TARGET", said.partition("\nOptions")[2].partition(
            "\nExamples")[0])

    def test_version_names_grpcs_release(self):
        done = run("--version")
        self.check(done, 0)
        self.assertIn("1.51.1", done.stdout)


class JsonTest(CommandTest):
    """Checks that --json prints one JSON object, whatever the result."""

    def error(self, *arguments, code=1, **options):
        done = run(*arguments, "--json", **options)
        self.check(done, code)
        self.assertEqual(done.stdout.count("\n"), 1, done.stdout)
        error = json.loads(done.stdout)["error"]
        self.assertIn(error, done.stderr)
        return error

    def test_an_error_is_in_it(self):
        self.assertIn("nothing listens there",
                      self.error("ping", "127.0.0.1:1", "--count=1"))
        self.assertIn("/nonexistent",
                      self.error("ping", "a:1", "--ca=/nonexistent"))
        self.assertIn("/nonexistent", self.error("ps", "verify", "/nonexistent"))
        self.assertIn("/nonexistent",
                      self.error("ps", "inspect", "/nonexistent"))
        self.assertIn("127.0.0.1:1", self.error("ps", "checkpoint",
                                                "127.0.0.1:1"))
        self.assertIn("there is no process", self.error("top", "999999999"))
        self.assertIn("127.0.0.1:1", self.error("top", "127.0.0.1:1"))
        port = self.serve().rpartition(":")[2]
        self.assertIn("in use", self.error("serve", f"--port={port}"))

    def test_a_wrong_command_line_is_in_it(self):
        self.assertIn("TARGET is missing", self.error("ping", code=2))
        self.assertIn("--count", self.error("ping", "a:1", "--count=0", code=2))
        self.assertIn("--fabrics needs", self.error("ping", "--fabrics=", "a:1",
                                                    code=2))
        self.assertIn("--bogus", self.error("doctor", "--bogus", code=2))

    def test_what_a_failed_call_said_is_in_it(self):
        class Refuse(grpc.GenericRpcHandler):
            def service(self, details):
                def refuse(request, context):
                    if request:
                        context.abort(grpc.StatusCode.INTERNAL, "no room")
                    return request
                return grpc.unary_unary_rpc_method_handler(refuse)

        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers([Refuse()])
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        done = run("ping", f"127.0.0.1:{port}", "--count=1", "--json")
        self.check(done, 1)
        report = json.loads(done.stdout)
        self.assertEqual(report["error"], "no room")
        self.assertEqual(report["sizes"][0]["failed"], 1)

    def test_what_has_no_json_has_none(self):
        self.assertEqual(run("run", "--json", "true").stdout, "")


class DoctorTest(CommandTest):

    def test_text_and_json_say_the_same(self):
        text, both = run("doctor"), run("doctor", "--json")
        self.check(both, text.returncode)
        self.check(text, text.returncode)
        report = json.loads(both.stdout)
        self.assertEqual(report["problems"], len(
            [f for f in report["findings"] if f["level"] == "problem"]))
        for finding in report["findings"]:
            self.assertIn(finding["subject"], text.stdout)
        for path in ("shm", "verbs", "tcp", "http2"):
            self.assertIn(path, [p["fabric"] for p in report["paths"]])
        self.assertLessEqual(max(map(len, text.stdout.splitlines())), 90)

    def test_brief_leaves_out_what_is_ok(self):
        self.assertNotRegex(run("doctor", "--brief").stdout, r"\n  ok ")

    def test_a_bad_setting_is_a_problem_and_the_exit_code_says_so(self):
        done = run("doctor", env={"PENSTOCK_FABRIC": "shm",
                                  "PENSTOCK_POLLING": "bus\x1by"})
        self.check(done, 1)
        self.assertIn("did you mean PENSTOCK_FABRICS?", done.stdout)
        self.assertIn("adaptive, busy or event", done.stdout)

    def test_what_penstock_adds_to_its_environment_is_not_shown(self):
        self.assertNotIn("PENSTOCK_LOG", run("doctor").stdout)

    def test_policy_off_leaves_stock_grpc(self):
        report = json.loads(run("doctor", "--json",
                                env={"PENSTOCK_POLICY": "off"}).stdout)
        self.assertEqual([p["fabric"] for p in report["paths"]], ["http2"])


    def test_a_target_is_connected_to_and_its_path_is_named(self):
        address = self.serve()
        done = run("doctor", address)
        self.assertRegex(
            done.stdout,
            rf"What carries one to {address}\n  shm    ring \d+ KiB; a call takes")
        report = json.loads(run("doctor", address, "--json",
                                "--fabrics=verbs,tcp").stdout)["target"]
        self.assertEqual(report["path"], "tcp")
        self.assertIn("verbs: ", report["reason"])
        self.assertGreater(report["round_trip_us"], 0)

    def verdict(self, *command, env=None, **options):
        """Asserts that the doctor's verdict on shm matches the path of its own
        connection. Returns the verdict."""
        address = self.serve()
        done = subprocess.run(
            [*command, PROGRAM, "doctor", "--json", address], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT,
            env={**clean_environment(), **(env or {})}, **options)
        report = json.loads(done.stdout)
        (shm,) = [path for path in report["paths"] if path["fabric"] == "shm"]
        self.assertEqual(shm["usable"], report["target"]["path"] == "shm",
                         report)
        return shm

    def test_the_verdict_is_what_a_connection_gets(self):
        self.assertTrue(self.verdict()["usable"])
        self.assertTrue(self.verdict(
            env={"PENSTOCK_SHM_DIRECTORY": ""})["usable"])
        for env in ({"PENSTOCK_SHM_SHARING": "off"},
                    {"PENSTOCK_SHM_DIRECTORY": "/nonexistent"},
                    {"PENSTOCK_FABRICS": "tcp,shm"},
                    {"PENSTOCK_FABRICS": "verbs"}):
            self.assertFalse(self.verdict(env=env)["usable"], env)
        # Limits the size of files, so that shared memory has no room for a
        # ring.
        self.assertFalse(self.verdict(preexec_fn=lambda: resource.setrlimit(
            resource.RLIMIT_FSIZE, (1 << 16, 1 << 16)))["usable"])

    def test_where_the_kernel_is_not_known_there_is_no_shm(self):
        """Hides /proc, as in a chroot or with ProcSubset=pid."""
        hide = ["unshare", "--mount", "sh", "-c",
                "mount --bind /dev/null /proc/sys/kernel/random/boot_id && "
                'exec "$@"', "sh"]
        if subprocess.run([*hide, "true"], check=False,
                          stderr=subprocess.DEVNULL).returncode != 0:
            self.skipTest("no mount namespace can be had here")
        shm = self.verdict(*hide)
        self.assertFalse(shm["usable"])
        self.assertIn("boot_id cannot be read", shm["text"])

    def test_a_target_that_does_not_answer_is_a_problem(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            done = run("doctor", f"127.0.0.1:{silent.getsockname()[1]}",
                       "--timeout=0.5")
        self.check(done, 1)
        self.assertRegex(done.stdout, r"\n  none   127.* did not answer")
        self.assertRegex(done.stdout, r"\n[1-9]\d* problem")


class ScriptsTest(CommandTest):
    """Checks texts that are made from the tree of commands, such as the
    manual. They must have everything that --help has."""

    def options(self, *command):
        """Returns the options of a command, as --help lists them."""
        section = re.search(r"^Options\n((?:  .*\n)+)",
                            run(*command, "--help").stdout, re.MULTILINE)[1]
        found = set(re.findall(r"^  (?:-\w, )?(--[\w-]+)", section,
                               re.MULTILINE))
        self.assertIn("--help", found)
        return found

    commands = UsageTest.commands

    def test_hidden_commands_are_not_listed(self):
        self.assertEqual({"man", "completion"} & set(self.commands()), set())

    def test_the_man_page_has_every_option(self):
        page = run("man")
        self.check(page, 0)
        parts = page.stdout.replace("\\-", "-").split('\n.SS "')[1:]
        names = [part.split()[1] for part in parts]
        self.assertEqual(list(dict.fromkeys(names)), self.commands())
        for part in parts:
            if "COMMAND" in part.partition("\n")[0]:
                continue
            for option in self.options(part.split()[1]):
                self.assertRegex(part, rf"(?m)^\.B (-\w, )?{option}(=|$)")

    def test_the_man_page_is_without_errors(self):
        if not shutil.which("groff"):
            self.skipTest("groff is not here")
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-P-cbou"],
                              input=run("man").stdout, capture_output=True,
                              text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("penstock doctor [OPTIONS] [TARGET]", done.stdout)

    def complete(self, *words):
        """Returns the completions that bash offers for the last word."""
        script = ('source /dev/stdin; COMP_WORDS=("$@"); '
                  'COMP_CWORD=$(($# - 1)); _penstock; '
                  'printf "%s\n" "${COMPREPLY[@]}"')
        done = subprocess.run(
            ["bash", "-c", script, "bash", "penstock", *words],
            input=run("completion", "bash").stdout, capture_output=True,
            text=True, timeout=LIMIT)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return set(done.stdout.split())

    def test_bash_completes_commands_and_their_options(self):
        self.assertEqual(self.complete(""), {*self.commands(), "--help",
                                             "--version"})
        self.assertEqual(self.complete("do"), {"doctor"})
        for command in self.commands():
            offered = {word.rstrip("=") for word in self.complete(command, "-")}
            self.assertEqual(offered, self.options(command))
        self.assertIn("--count=", self.complete("ping", "a:1", "--co"))

    def test_fish_completes_commands_and_their_options(self):
        script = run("completion", "fish").stdout
        for command in self.commands():
            self.assertRegex(script, rf"(?m) -a {command} ")
            offered = re.findall(
                rf"(?m)__fish_seen_subcommand_from {command}' -l (\S+)", script)
            self.assertEqual({f"--{name}" for name in offered},
                             self.options(command))

    def test_the_shells_that_are_here_can_read_their_scripts(self):
        for shell in ("bash", "zsh", "fish"):
            if not shutil.which(shell):
                print(f"{shell} is not here: its script was not read")
                continue
            done = subprocess.run([shell, "-n", "/dev/stdin"],
                                  input=run("completion", shell).stdout,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.check(run("completion", "tcsh"), 2)


class OutputTest(CommandTest):

    def test_a_reader_that_goes_away_ends_it_without_a_word(self):
        reader, writer = os.pipe()
        os.close(reader)
        done = run("doctor", stdout=writer)
        os.close(writer)
        self.check(done, 1)
        self.assertEqual(done.stderr, "")

    def test_a_reader_who_is_slow_gets_all_even_where_writes_do_not_wait(self):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
        whole = run("man").stdout
        self.assertGreater(len(whole), 4096)
        child = subprocess.Popen([PROGRAM, "man"], stdout=writer,
                                 stderr=subprocess.PIPE, text=True)
        os.close(writer)
        # Waits until the pipe is full and the child sleeps.
        select.select([reader], [], [], LIMIT)
        while state_of(child.pid) == "R":
            os.sched_yield()
        with os.fdopen(reader) as said:
            self.assertEqual(said.read(), whole)
        self.assertEqual((child.communicate(timeout=LIMIT)[1], child.returncode),
                         ("", 0))

    def test_a_full_disk_is_an_error(self):
        with open("/dev/full", "w") as full:
            done = run("doctor", stdout=full)
            served = run("serve", "--port=0", stdout=full)
        for each in (done, served):
            self.check(each, 1)
            self.assertIn("standard output", each.stderr)

    def test_closed_descriptors_are_no_sockets(self):
        address = self.serve()
        done = subprocess.run(
            ["sh", "-c", f'exec "{PROGRAM}" ping {address} --count=1 >&-'],
            stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1)
        self.assertIn("standard output", done.stderr)
        self.assertIsNone(self.server.poll())

    def test_a_closed_descriptor_is_taken_before_a_socket_takes_it(self):
        server = subprocess.Popen(
            ["sh", "-c", f'exec "{PROGRAM}" serve --port=0 >&-'],
            env=clean_environment())
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        taken, end = "/", time.monotonic() + LIMIT
        # Waits until descriptor 1 is /dev/null. Before main(), descriptor 1
        # may be missing, or be a file that is being loaded or probed.
        while taken != "/dev/null" and time.monotonic() < end:
            try:
                if "penstock" in os.readlink(f"/proc/{server.pid}/exe"):
                    taken = os.readlink(f"/proc/{server.pid}/fd/1")
            except FileNotFoundError:
                pass
        self.assertEqual(taken, "/dev/null")

    def on_terminal(self, columns, *arguments, env=None):
        """Runs penstock on a terminal. Returns its output."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ,
                    struct.pack("HHHH", 24, columns, 0, 0))
        child = subprocess.Popen(
            [PROGRAM, *arguments], stdout=slave,
            env={**clean_environment(), "TERM": "xterm", **(env or {})})
        os.close(slave)
        shown = b""
        while True:
            try:
                piece = os.read(master, 4096)
            except OSError:  # the terminal has closed
                break
            if not piece:
                break
            shown += piece
        os.close(master)
        child.wait(LIMIT)
        return shown.decode()

    def test_colours_are_for_terminals_and_can_be_refused(self):
        self.assertIn(ESCAPE, self.on_terminal(80, "doctor"))
        self.assertNotIn(ESCAPE, self.on_terminal(80, "doctor",
                                                  env={"NO_COLOR": "1"}))
        self.assertNotIn(ESCAPE, self.on_terminal(80, "doctor",
                                                  env={"TERM": "dumb"}))

    def test_help_fits_into_60_columns(self):
        for command in "", "doctor", "ping", "serve", "run", "top", "bench":
            shown = self.on_terminal(60, *command.split(), "--help",
                                     env={"NO_COLOR": "1"})
            for line in shown.splitlines():
                # Users copy the examples.
                if not line.startswith("  penstock "):
                    self.assertLessEqual(len(line), 60, line)

    def test_help_into_a_closed_pipe_ends_without_a_word(self):
        for command in "", "doctor", "ping", "serve", "run", "top", "bench":
            reader, writer = os.pipe()
            os.close(reader)
            done = run(*command.split(), "--help", stdout=writer)
            os.close(writer)
            self.check(done, 1)
            self.assertEqual(done.stderr, "")

    def test_a_narrow_terminal_gets_lines_and_not_columns(self):
        arguments = ["ping", self.serve(), "--count=1", "--sizes=8,64,1KiB,2KiB"]
        self.assertRegex(self.on_terminal(80, *arguments), r"round +8 B +64 B")
        narrow = self.on_terminal(40, *arguments)
        self.assertRegex(narrow, r"\n1: 8 B: [\d.]+ [um]s\r\n1: 64 B: ")


class PingTest(CommandTest):

    def ping(self, *arguments, **options):
        done = run("ping", *arguments, "--json", **options)
        self.check(done, 0)
        return json.loads(done.stdout)

    def test_shm_carries_it_and_the_summary_has_the_percentiles(self):
        done = run("ping", self.serve(), "--count=3", "--interval=0.01",
                   "--sizes=0,8,64KiB,1MiB")
        self.check(done, 0)
        self.assertRegex(done.stdout, r"^127\.0\.0\.1:\d+ over shm \(ring ")
        self.assertIn("calls its echo service", done.stdout)
        self.assertRegex(done.stdout, r"\n     3 +[\d.]+ [um]s")
        self.assertIn("12 of 12 calls answered", done.stdout)
        self.assertRegex(done.stdout, r"size +answers +min +p50 +p90 +p99 +max")
        self.assertRegex(done.stdout, r"\n1 MiB +3( +[\d.]+ [um]s){5}\n")

    def test_json_has_a_size_each_with_percentiles_in_order(self):
        report = self.ping(self.serve(), "--count=50", "--flood",
                           "--sizes=8,1MiB")
        self.assertEqual(report["path"], "shm")
        self.assertEqual([s["bytes"] for s in report["sizes"]], [8, 1 << 20])
        for size in report["sizes"]:
            self.assertEqual((size["answered"], size["failed"]), (50, 0))
            times = [size[name + "_us"]
                     for name in ("min", "p50", "p90", "p99", "max")]
            self.assertGreater(times[0], 0)
            self.assertEqual(times, sorted(times))

    def test_fabrics_are_chosen_and_the_reason_is_given(self):
        address = self.serve()
        report = self.ping(address, "--count=1", "--fabrics=tcp")
        self.assertEqual(report["path"], "tcp")
        report = self.ping(address, "--count=1", "--fabrics=http2")
        self.assertEqual(report["path"], "http2")
        self.assertIn("--fabrics=http2", report["reason"])

    def test_a_server_without_shm_says_why(self):
        report = self.ping(self.serve(env={"PENSTOCK_SHM_SHARING": "off"}),
                           "--count=1")
        self.assertEqual(report["path"], "tcp")
        self.assertIn("shm", report["reason"])

    def stock(self, handlers=()):
        server = grpc.server(concurrent.futures.ThreadPoolExecutor(2))
        server.add_generic_rpc_handlers(handlers)
        port = server.add_insecure_port("127.0.0.1:0")
        server.start()
        self.addCleanup(lambda: server.stop(0).wait())
        return f"127.0.0.1:{port}"

    def test_a_stock_server_answers_that_it_has_no_such_method(self):
        report = self.ping(self.stock(), "--count=2", "--interval=0.01",
                           "--sizes=8,1MiB")
        self.assertEqual(report["path"], "http2")
        self.assertIn("UNIMPLEMENTED", report["calls"])
        # Expects no other size, because the server does not read the payload.
        self.assertEqual([s["bytes"] for s in report["sizes"]], [0])

    def test_a_stock_servers_health_service_gets_the_payload(self):
        seen = []

        class Health(grpc.GenericRpcHandler):
            def service(self, details):
                if details.method != "/grpc.health.v1.Health/Check":
                    return None
                def check(request, context):
                    seen.append(request)
                    return b"\x08\x01"
                return grpc.unary_unary_rpc_method_handler(check)

        report = self.ping(self.stock([Health()]), "--count=1",
                           "--sizes=1,127,128,70000")
        self.assertIn("health", report["calls"])
        self.assertEqual(seen[0], b"")
        self.assertEqual([len(r) for r in seen[1:]],
                         [2 + 1, 2 + 127, 3 + 128, 4 + 70000])
        self.assertEqual(seen[3][:3], b"\x7a\x80\x01")

    def test_an_echo_that_is_not_what_was_sent_is_no_answer(self):
        class Forge(grpc.GenericRpcHandler):
            def service(self, details):
                def forge(request, context):
                    return request[:-1] + b"?" if request else b""
                return grpc.unary_unary_rpc_method_handler(forge)

        done = run("ping", self.stock([Forge()]), "--count=1", "--sizes=64KiB")
        self.check(done, 1)
        self.assertIn("differs from what was sent", done.stdout)
        self.assertIn("0 of 1 calls answered", done.stdout)

    def test_a_server_that_wants_a_login_still_answers(self):
        class Refuse(grpc.GenericRpcHandler):
            def service(self, details):
                def check(request, context):
                    context.abort(grpc.StatusCode.UNAUTHENTICATED, "who?")
                return grpc.unary_unary_rpc_method_handler(check)

        report = self.ping(self.stock([Refuse()]), "--count=1")
        self.assertIn("UNAUTHENTICATED", report["calls"])
        self.assertEqual(report["sizes"][0]["answered"], 1)

    def test_an_unreachable_target_is_named_with_its_remedy(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
            done = run("ping", f"127.0.0.1:{port}", "--count=1")
        self.check(done, 1)
        self.assertIn("nothing listens there", done.stderr)
        self.assertIn("is the server running", done.stderr)
        done = run("ping", "unix:/nonexistent/socket", "--count=1")
        self.check(done, 1)
        self.assertIn("there is no such socket", done.stderr)

    def test_a_server_that_says_nothing_costs_the_timeout_and_no_more(self):
        with socket.socket() as silent:
            silent.bind(("127.0.0.1", 0))
            silent.listen()
            begin = time.monotonic()
            done = run("ping", f"127.0.0.1:{silent.getsockname()[1]}",
                       "--timeout=0.5")
        self.check(done, 1)
        self.assertIn("did not answer within 500ms", done.stderr)
        self.assertLess(time.monotonic() - begin, LIMIT / 2)

    def test_what_grpc_says_without_a_server_is_no_answer(self):
        for target in "ipv4:1.2.3.4", "dns:///", "unix:":
            for command in ["ping", "--count=1"], ["doctor", "--brief"]:
                with self.subTest(target=target, command=command):
                    done = run(command[0], target, *command[1:])
                    self.check(done, 1)
                    said = done.stdout + done.stderr
                    self.assertIn(f"cannot reach {target}", said)
                    self.assertNotIn("TLS", said)
                    self.assertNotIn("answered", said)

    def test_a_web_server_that_finds_nothing_is_no_grpc_server(self):
        with socket.socket() as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()

            def answer():
                peer, _ = listener.accept()
                with peer:
                    peer.recv(24)
                    peer.sendall(b"HTTP/1.1 404 Not Found\r\n"
                                 b"Content-Length: 0\r\n\r\n")
                    peer.settimeout(LIMIT)
                    while peer.recv(4096):
                        pass
            with concurrent.futures.ThreadPoolExecutor(1) as pool:
                pool.submit(answer)
                done = run("ping", f"127.0.0.1:{listener.getsockname()[1]}",
                           "--count=1")
        self.check(done, 1)
        self.assertIn("no gRPC server", done.stderr)

    def port_of(self, answer):
        """Returns a port at which `answer` is called with each connection."""
        listener = socket.socket()
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        def serve():
            while True:
                try:
                    peer, _ = listener.accept()
                except OSError:  # the listener is closed
                    return
                with peer:
                    peer.settimeout(LIMIT)
                    try:
                        answer(peer)
                    except OSError:
                        pass
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        self.addCleanup(thread.join, LIMIT)
        self.addCleanup(listener.close)
        self.addCleanup(listener.shutdown, socket.SHUT_RDWR)
        return listener.getsockname()[1]

    def test_what_is_no_grpc_server_is_named_by_its_own_words(self):
        def web(peer):
            peer.recv(24)
            peer.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n"
                         b"Connection: close\r\n\r\n")

        def shell(peer):
            peer.sendall(b"SSH-2.0-OpenSSH_9.2\r\n")
            peer.recv(24)

        def mail(peer):
            peer.sendall(b"220 \x1b[2Jmail ESMTP\r\n")
            peer.recv(24)

        for answer, said in ((web, "HTTP/1.1 400 Bad Request"),
                             (shell, "SSH-2.0-OpenSSH_9.2"),
                             (mail, "220 \\x1b[2Jmail ESMTP")):
            address = f"127.0.0.1:{self.port_of(answer)}"
            for command in (["ping", address, "--count=1"],
                            ["ping", f"ipv4:{address}", "--count=1"],
                            ["doctor", address], ["ps", "status", address]):
                with self.subTest(command=command, said=said):
                    done = run(*command, "--timeout=3")
                    self.check(done, 1)
                    text = " ".join((done.stdout + done.stderr).split())
                    self.assertIn("no gRPC server listens there, but a program "
                                  f'that sends "{said}"', text)

    def test_which_side_is_without_penstock_is_told(self):
        peer = self.ping(self.stock(), "--count=1")
        self.assertEqual(peer["reason"], "the peer does not speak Penstock")
        address = self.serve()
        off = self.ping(address, "--count=1", env={"PENSTOCK_POLICY": "off"})
        self.assertEqual((off["path"], off["reason"]),
                         ("http2", "PENSTOCK_POLICY=off here"))
        bad = self.ping(address, "--count=1", env={"PENSTOCK_FABRICS": "x"})
        self.assertRegex(bad["reason"],
                         "Penstock is off here: PENSTOCK_FABRICS=x is not")

    def wait_for_round(self, child, number):
        shown = ""
        while not re.search(rf"^ +{number} ", shown, re.MULTILINE):
            line = child.stdout.readline()
            self.assertTrue(line, shown)
            shown += line
        return shown

    def test_ctrl_c_prints_the_summary(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            child = subprocess.Popen(
                [PROGRAM, "ping", self.serve(), "--interval=0.01"],
                stdout=subprocess.PIPE, text=True, env=clean_environment())
            self.addCleanup(child.stdout.close)
            self.wait_for_round(child, 2)
            child.send_signal(number)
            rest = child.stdout.read()
            self.assertEqual(child.wait(LIMIT), 0)
            self.assertIn("calls answered", rest)

    def test_a_server_that_dies_and_comes_back_is_seen_to(self):
        address = self.serve()
        child = subprocess.Popen(
            [PROGRAM, "ping", address, "--interval=0.01", "--timeout=1"],
            stdout=subprocess.PIPE, text=True, env=clean_environment())
        self.addCleanup(child.stdout.close)
        self.wait_for_round(child, 2)
        self.server.kill()
        self.server.wait()
        line = ""
        while "failed" not in line:
            line = child.stdout.readline()
            self.assertTrue(line)
        self.serve(port=address.rpartition(":")[2])
        while "failed" in line or not re.match(r" +\d+ +[\d.]+ [um]s", line):
            line = child.stdout.readline()
            self.assertTrue(line)
        child.send_signal(signal.SIGINT)
        child.stdout.read()
        self.assertEqual(child.wait(LIMIT), 0)

    def test_a_reader_that_goes_away_ends_the_ping(self):
        child = subprocess.Popen(
            [PROGRAM, "ping", self.serve(), "--interval=0.01"],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=clean_environment())
        self.addCleanup(child.stderr.close)
        child.stdout.readline()
        child.stdout.close()
        self.assertEqual(child.wait(LIMIT), 1)
        self.assertEqual(child.stderr.read(), "")


class ProbeTest(CommandTest):
    """Runs ping and doctor in their server's environment, as in a pod."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.address = self.serve()

    def probe(self, env):
        """Returns the doctor's output."""
        for command in (["ping", self.address, "--count=1"],
                        ["doctor", self.address]):
            done = run(*command, env=env)
            self.check(done, 0)
            self.assertEqual(done.stderr, "")
            self.assertRegex(done.stdout, "over shm|  shm .* a call takes")
        return done.stdout

    def test_they_do_not_want_the_servers_port(self):
        with socket.socket() as server:
            server.bind(("127.0.0.1", 0))
            server.listen()
            setting = f"PENSTOCK_METRICS={server.getsockname()[1]}"
            said = self.probe(dict([setting.split("=")]))
        # Expects that the output still shows that the environment has the
        # setting.
        self.assertIn(setting, said)

    def test_they_write_to_none_of_the_servers_files(self):
        trace, record = (os.path.join(self.folder, name)
                         for name in ("trace.json", "calls.rec"))
        for path in trace, record:
            with open(path, "w", encoding="ascii") as file:
                file.write("the server's")
        self.probe({"PENSTOCK_TRACE": trace, "PENSTOCK_RECORD": record})
        for path in trace, record:
            with open(path, encoding="ascii") as file:
                self.assertEqual(file.read(), "the server's")
        self.assertEqual(sorted(os.listdir(self.folder)),
                         ["calls.rec", "trace.json"])


class ServeTest(CommandTest):

    def test_it_ends_by_ctrl_c_with_0(self):
        self.serve()
        self.server.send_signal(signal.SIGINT)
        self.assertEqual(self.server.wait(LIMIT), 0)

    def test_it_is_at_loopback_only_unless_told_otherwise(self):
        self.assertRegex(self.serve(), r"^127\.0\.0\.1:\d+$")

    def test_listen_takes_an_address_with_its_port_or_without(self):
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            port = unused.getsockname()[1]
        self.assertEqual(self.serve(f"--listen=127.0.0.1:{port}", port=None),
                         f"127.0.0.1:{port}")
        self.assertEqual(self.serve("--listen=127.0.0.2").partition(":")[0],
                         "127.0.0.2")
        self.assertRegex(self.serve("--listen=localhost:0", port=None),
                         r"^localhost:[1-9]\d*$")

    def test_ipv6_addresses_have_brackets_where_a_port_follows(self):
        if not socket.has_ipv6:
            self.skipTest("no IPv6 here")
        try:
            with socket.socket(socket.AF_INET6) as unused:
                unused.bind(("::1", 0))
        except OSError as error:
            self.skipTest(f"no IPv6 loopback here: {error}")
        for listen in "::1", "[::1]":
            self.assertRegex(self.serve(f"--listen={listen}"),
                             r"^\[::1\]:[1-9]\d*$")
        address = self.serve("--listen=[::1]:0", port=None)
        self.assertRegex(address, r"^\[::1\]:[1-9]\d*$")
        self.check(run("ping", address, "--count=1"), 0)

    def test_what_to_type_elsewhere_is_no_address_of_all(self):
        server = subprocess.Popen([PROGRAM, "serve", "--listen=0.0.0.0:0"],
                                  stdout=subprocess.PIPE, text=True,
                                  env=clean_environment())
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        lines = [server.stdout.readline() for _ in range(4)]
        self.assertRegex(lines[1], r"^  penstock ping 127\.0\.0\.1:\d+\n$")
        self.assertRegex(lines[3], r"^  penstock ping HOST:\d+\n$")
        self.check(run("ping", lines[1].split()[-1], "--count=1"), 0)

    def test_a_port_in_use_is_an_error_with_its_remedy(self):
        port = self.serve().rpartition(":")[2]
        done = run("serve", f"--port={port}")
        self.check(done, 1)
        self.assertIn("--port=0", done.stderr)

    def test_why_it_cannot_listen_is_said(self):
        port = self.serve().rpartition(":")[2]
        for listen, said in ((f"127.0.0.1:{port}", "the port is in use"),
                             ("no-such-name.invalid:0", "is unknown"),
                             ("192.0.2.1:0", "none of this machine's")):
            done = run("serve", f"--listen={listen}")
            self.check(done, 1)
            self.assertIn(f"cannot listen at {listen}: ", done.stderr)
            self.assertIn(said, done.stderr)
        done = run("serve", "--port=0", env={"PENSTOCK_POLICY": "require",
                                             "PENSTOCK_FABRICS": "x"})
        self.check(done, 1)
        self.assertIn("Penstock is required but not used: PENSTOCK_FABRICS=x",
                      done.stderr)

    def test_text_says_how_to_go_on(self):
        server = subprocess.Popen([PROGRAM, "serve", "--port=0"],
                                  stdout=subprocess.PIPE, text=True)
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.wait)
        self.addCleanup(server.kill)
        server.stdout.readline()
        self.assertRegex(server.stdout.readline(),
                         r"^  penstock ping 127\.0\.0\.1:[1-9]\d*$")


class TlsTest(CommandTest):
    """Tests a server with a self-signed certificate for "localhost"."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.key, cls.cert = folder.name + "/key.pem", folder.name + "/cert.pem"
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes",
             "-keyout", cls.key, "-out", cls.cert, "-days", "2",
             "-subj", "/CN=localhost", "-addext",
             "subjectAltName=DNS:localhost"],
            check=True, capture_output=True)

    def setUp(self):
        address = self.serve(f"--cert={self.cert}", f"--key={self.key}")
        self.port = address.rpartition(":")[2]

    def ping(self, *arguments):
        return run("ping", f"127.0.0.1:{self.port}", "--count=1",
                   "--timeout=20", *arguments)

    def test_with_the_right_authority_it_works(self):
        done = self.ping(f"--ca={self.cert}", "--server-name=localhost",
                         "--json")
        self.check(done, 0)
        self.assertIn(json.loads(done.stdout)["path"], ("shm", "tcp"))

    def test_each_mistake_is_told_from_the_others(self):
        for arguments, said in [
                ([], "--tls"),
                (["--tls"], "--ca=FILE"),
                ([f"--ca={self.cert}"], "--server-name"),
                (["--ca=/nonexistent"], "cannot read /nonexistent"),
                ([f"--ca={self.key}"], "PEM")]:
            with self.subTest(arguments):
                done = self.ping(*arguments)
                self.check(done, 1)
                self.assertIn(said, done.stderr)

    def test_a_key_that_does_not_fit_is_named(self):
        other = f"{os.path.dirname(self.key)}/other.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "RSA", "-out",
                        other], check=True, capture_output=True)
        pair = [f"--cert={self.cert}", f"--key={other}"]
        for done in (run("serve", "--port=0", *pair),
                     self.ping(f"--ca={self.cert}", *pair)):
            self.check(done, 1)
            self.assertIn(f"{other}: it is not the key of the certificate in "
                          f"{self.cert}", done.stderr)
        done = run("serve", "--port=0", f"--cert={self.key}",
                   f"--key={self.key}")
        self.check(done, 1)
        self.assertIn(f"{self.key}: there is no certificate", done.stderr)

    def test_tls_to_a_server_without_it_is_told(self):
        done = run("ping", self.serve(), f"--ca={self.cert}", "--count=1")
        self.check(done, 1)
        self.assertIn("does not speak TLS", done.stderr)


if __name__ == "__main__":
    unittest.main()
