#!/usr/bin/python3 -B
"""Tests penstock run, bench and top, the commands that concern other
programs."""

import http.server
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

from penstock_test import LIMIT, PROGRAM, CommandTest, clean_environment, run

# A gRPC program in Python.
CLIENT = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
echo = channel.unary_unary("/penstock.Ping/Echo")
assert echo(b"hello", timeout=20) == b"hello"
print("answered", *sys.argv[2:])
"""


# A program that sends the given number of messages, which may be wrong for the
# method.
SENDER = """
import sys, grpc
channel = grpc.insecure_channel(sys.argv[1])
send = channel.stream_unary("/penstock.Ping/Echo")
compression = grpc.Compression.Gzip if "gzip" in sys.argv else None
try:
    print(send(iter([b"a" * 9999] * int(sys.argv[2])), timeout=20,
               compression=compression)[:1])
except grpc.RpcError as error:
    print(error.code().name)
"""


class ServeTest(CommandTest):
    """Tests of `penstock serve` with peers that use stock gRPC."""

    def send(self, address, *arguments):
        return subprocess.run(
            [sys.executable, "-c", SENDER, address, *arguments], text=True,
            stdout=subprocess.PIPE, timeout=LIMIT,
            env=clean_environment()).stdout.strip()

    def test_a_call_with_no_message_or_several_does_not_end_it(self):
        address = self.serve()
        self.assertEqual(self.send(address, "0"), "INTERNAL")
        self.assertNotEqual(self.send(address, "2"), "")
        self.assertEqual(self.send(address, "1", "gzip"), "b'a'")
        self.assertEqual(self.send(address, "1"), "b'a'")
        self.assertIsNone(self.server.poll())


class RunTest(CommandTest):

    def test_a_python_client_goes_over_shm(self):
        address = self.serve()
        done = run("run", sys.executable, "-c", CLIENT, address, "--json", "-x",
                   env={"PENSTOCK_LOG": "info"})
        self.assertEqual(done.returncode, 0, done)
        self.assertEqual(done.stdout, "answered --json -x\n")
        self.assertIn(": shm", done.stderr)

    def test_fabrics_come_before_the_environments(self):
        address = self.serve()
        done = run("run", "--fabrics", "tcp", "--", sys.executable, "-c",
                   CLIENT, address,
                   env={"PENSTOCK_LOG": "info", "PENSTOCK_FABRICS": "shm"})
        self.assertEqual(done.returncode, 0, done)
        self.assertIn(": tcp", done.stderr)
        self.assertNotIn(": shm", done.stderr)

    def test_arguments_arrive_as_they_are(self):
        odd = ["", "[a,b]", "{}", "--", "--fabrics=shm", "-h", "a b"]
        done = run("run", "--fabrics=tcp", "printf", "<%s>", *odd)
        self.check(done, 0)
        self.assertEqual(done.stdout, "".join(f"<{word}>" for word in odd))

    def test_the_exit_code_and_signals_are_the_programs(self):
        self.assertEqual(run("run", "sh", "-c", "exit 7").returncode, 7)
        self.assertEqual(run("run", "sh", "-c", "kill -TERM $$").returncode,
                         -signal.SIGTERM)
        # Expects that SIGPIPE has its default effect in the program.
        self.assertEqual(run("run", "sh", "-c", "kill -PIPE $$").returncode,
                         -signal.SIGPIPE)

    def test_signals_are_ignored_and_blocked_as_they_were(self):
        """Tests a command whose parent ignores or blocks some signals, as a
        service manager, nohup or a shell does."""
        def signals(*command, ignored, blocked):
            def set_up():
                for number in (signal.SIGPIPE, signal.SIGHUP, signal.SIGINT):
                    signal.signal(number, signal.SIG_IGN if number in ignored
                                  else signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
            shown = subprocess.run(
                [*command, "grep", "-E", "Sig(Blk|Ign):", "/proc/self/status"],
                stdout=subprocess.PIPE, text=True, check=True, timeout=LIMIT,
                preexec_fn=set_up, restore_signals=False,
                env=clean_environment()).stdout
            return {name: int(mask, 16) for name, mask in
                    (line.split(":") for line in shown.splitlines())}

        def mask(numbers):
            return sum(1 << (number - 1) for number in numbers)

        for ignored in (set(), {signal.SIGPIPE},
                        {signal.SIGPIPE, signal.SIGHUP, signal.SIGINT}):
            for blocked in set(), {signal.SIGPIPE, signal.SIGUSR1}:
                with self.subTest(ignored=ignored, blocked=blocked):
                    stock = signals(ignored=ignored, blocked=blocked)
                    carried = signals(PROGRAM, "run", ignored=ignored,
                                      blocked=blocked)
                    self.assertEqual(carried, stock)
                    self.assertEqual(carried["SigBlk"], mask(blocked))
                    self.assertEqual(
                        carried["SigIgn"] & mask({signal.SIGPIPE,
                                                  signal.SIGHUP,
                                                  signal.SIGINT}),
                        mask(ignored))

    def test_what_cannot_be_run_says_so_as_a_shell_does(self):
        for program, code in (("no-such-program", 127), ("/etc/passwd", 126)):
            done = run("run", program)
            self.assertEqual(done.returncode, code)
            self.assertRegex(done.stderr, rf"\Apenstock run: .*{program}.*\n\Z")

    def test_a_relative_trace_is_in_the_folder_where_it_was_said(self):
        """Tests a program that changes its folder before it opens the trace."""
        show = ["sh", "-c", 'cd / && echo "$PENSTOCK_TRACE"']
        with tempfile.TemporaryDirectory() as folder:
            here = os.path.realpath(folder)
            program = os.path.abspath(PROGRAM)
            for said, means in (("t.json", f"{here}/t.json"),
                                ("./%p.json", f"{here}/%p.json"),
                                ("/a/t.json", "/a/t.json")):
                done = subprocess.run(
                    [program, "run", f"--trace={said}", *show], cwd=here,
                    capture_output=True, text=True, timeout=LIMIT,
                    env=clean_environment())
                self.assertEqual(
                    (done.returncode, os.path.normpath(done.stdout.strip())),
                    (0, means), done)
            calls = subprocess.run(
                [program, "run", "--trace=t.json", sys.executable, "-c",
                 "import os; os.chdir('/')\n" + CLIENT, self.serve()],
                cwd=here, capture_output=True, text=True, timeout=LIMIT,
                env=clean_environment())
            self.assertEqual(calls.returncode, 0, calls)
            with open(f"{here}/t.json", encoding="utf-8") as trace:
                self.assertIn('"name":"call"', trace.read())

    def test_a_folder_that_is_gone_is_said(self):
        with tempfile.TemporaryDirectory() as folder:
            gone = os.path.join(folder, "gone")
            os.mkdir(gone)
            done = subprocess.run(
                ["sh", "-c", 'rmdir "$PWD" && exec "$0" "$@"',
                 os.path.abspath(PROGRAM), "run", "--trace=t.json", "true"],
                cwd=gone, capture_output=True, text=True, timeout=LIMIT,
                env=clean_environment())
        self.check(done, 2)
        self.assertIn("--trace", done.stderr)
        self.assertIn("absolute", done.stderr)

    def test_wrong_command_lines_run_nothing(self):
        for arguments, said in (([], "which program?"),
                                (["--fabric=shm", "true"], "--fabric"),
                                (["--fabrics=x", "true"], "shm, verbs and tcp"),
                                (["--metrics=x", "true"], "--metrics"),
                                (["--metrics=", "true"], "--metrics"),
                                (["--fabrics=", "true"], "--fabrics"),
                                (["--trace=", "true"], "--trace"),
                                (["--trace=folder/", "true"], "--trace"),
                                (["--fabrics"], "--fabrics")):
            with self.subTest(arguments):
                done = run("run", *arguments)
                self.check(done, 2)
                self.assertIn(said, done.stderr)


class BenchTest(CommandTest):

    def test_it_measures_with_the_flags_given(self):
        done = run("bench", "--transports=shm,tcp", "--api=sync", "--sizes=8",
                   "--rounds=1", "--rpcs=20", env={"PENSTOCK_LOG": "error"})
        self.check(done, 0)
        self.assertRegex(done.stdout, r"\n +shm +[0-9.]+ ")
        self.assertRegex(done.stdout, r"\n +tcp +[0-9.]+ ")

    def test_the_flags_are_listed(self):
        done = run("bench", "--flags")
        self.check(done, 0)
        self.assertIn("--transports", done.stdout)

    def test_a_wrong_flag_is_refused(self):
        done = run("bench", "--transport=shm")
        self.check(done, 2)
        self.assertEqual(done.stderr, "penstock bench: there is no flag "
                         "--transport=shm: did you mean --transports?\n"
                         "penstock bench: try: penstock bench --flags\n")
        done = run("bench", "--quik")
        self.check(done, 2)
        self.assertIn("--quik: did you mean --quick?", done.stderr)
        done = run("bench", "--sizes=", "--quick")
        self.check(done, 2)
        self.assertIn("--sizes= needs a value", done.stderr)


class PsTest(CommandTest):

    def test_a_server_serves_until_it_is_told_to_end(self):
        server = subprocess.Popen(
            [PROGRAM, "ps", "serve", "--listen=127.0.0.1:0", "--workers=1"],
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env=clean_environment())
        self.addCleanup(server.stdout.close)
        self.addCleanup(server.kill)
        while "port" not in (line := server.stdout.readline()):
            self.assertTrue(line, "it ended")
        server.terminate()
        self.assertEqual(server.wait(LIMIT), 0)

    def test_its_flags_are_listed_and_wrong_ones_refused(self):
        done = run("ps", "serve", "--flags")
        self.check(done, 0)
        self.assertIn("--workers", done.stdout)
        done = run("ps", "serve", "--worker=1")
        self.check(done, 2)
        self.assertEqual(
            done.stderr, "penstock ps serve: there is no flag --worker=1: did "
            "you mean --workers?\n"
            "penstock ps serve: try: penstock ps serve --flags\n")
        done = run("ps", "serve", "--listen=", "--workers=1")
        self.check(done, 2)
        self.assertIn("--listen= needs a value", done.stderr)

    def test_flags_that_do_not_fit_together_are_a_wrong_command_line(self):
        for flags, said in [
                ([], "give --workers"),
                (["--workers=1", "--ca=/dev/null"], "give all three"),
                (["--workers=1", f"--access={__file__}"], "there is no TLS"),
                (["--workers=1", "--etcd=localhost", "--servers=2",
                  "--replicas=2"], "needs --servers=3"),
                (["--workers=1", "--etcd=localhost", "--servers=2",
                  "--replicas=1"], "a --listen with a port")]:
            with self.subTest(flags):
                done = run("ps", "serve", *flags)
                self.check(done, 2)
                self.assertIn(said, done.stderr)
                self.assertIn("try: penstock ps serve --flags", done.stderr)

    def test_a_line_that_cannot_be_written_is_an_error(self):
        with open("/dev/full", "w") as full:
            for arguments in (["--listen=127.0.0.1:0", "--workers=1"],
                              ["--flags"]):
                done = run("ps", "serve", *arguments, stdout=full)
                self.assertEqual(done.returncode, 1, done.stderr)
                self.assertIn("standard output", done.stderr)

    def test_a_closed_standard_output_is_no_socket(self):
        server = "ps/ps_server"
        if not os.path.exists(server):
            self.skipTest(f"there is no {server}: an installed penstock is tested")
        done = subprocess.run(
            ["sh", "-c", f'exec "{server}" --workers=1 >&-'],
            stderr=subprocess.PIPE, text=True, timeout=LIMIT)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn("standard output", done.stderr)

    def test_why_it_cannot_listen_is_said(self):
        port = self.serve().rpartition(":")[2]
        done = run("ps", "serve", f"--listen=127.0.0.1:{port}", "--workers=1")
        # Expects the reason, after a line of gRPC's log.
        self.assertEqual(done.returncode, 1)
        self.assertIn("penstock ps serve: cannot listen on "
                      f"127.0.0.1:{port}: the port is in use", done.stderr)


class Calls:
    """Runs `penstock ping --flood` until the end of the with block. Sends
    calls of 8 bytes and of 64 KiB, without a pause."""

    def __init__(self, address, *options):
        self.process = subprocess.Popen(
            [PROGRAM, "ping", address, "--flood", "--quiet", "--sizes=8,64KiB",
             *options],
            stdout=subprocess.DEVNULL, env=clean_environment())

    def __enter__(self):
        return self.process

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class TopTest(CommandTest):

    def until_it_answers(self, *arguments):
        """Returns the result of top, once the process can be asked."""
        end = time.monotonic() + LIMIT
        while True:
            done = run("top", *arguments)
            if done.returncode == 0 or time.monotonic() > end:
                return done

    def test_a_process_by_its_number(self):
        with Calls(self.serve()):
            done = self.until_it_answers(str(self.server.pid), "--count=1")
            self.check(done, 0)
            self.assertRegex(done.stdout, r"\nas server  [1-9]")
            self.assertRegex(done.stdout, r"\nshm +1 +[1-9]")
            self.assertRegex(done.stdout, r"\nserver shm +ipv4:127")
            done = run("top", str(self.server.pid), "-n", "2", "-i", "0.2",
                       "--json")
            self.check(done, 0)
            for line in done.stdout.splitlines():
                view = json.loads(line)
                # On a busy machine, tcp has carried calls until a moment ago.
                (path,) = (path for path in view["paths"]
                           if path["path"] == "shm")
                (connection,) = view["connections"]
                # Expects the same numbers in both outputs, except for rounding.
                self.assertAlmostEqual(
                    connection["bytes_sent_per_second"] /
                    max(1, path["bytes_sent_per_second"]), 1, delta=0.9)
            self.assertEqual(len(done.stdout.splitlines()), 2)

    def test_a_client_tells_how_long_its_calls_take(self):
        with Calls(self.serve()) as client:
            self.until_it_answers(str(client.pid), "--count=1")
            done = run("top", str(client.pid), "-n1", "--json")
            # Considers all paths, because the connection may have begun over
            # TCP just before.
            called = [path for path in json.loads(done.stdout)["paths"]
                      if path["call_p50_seconds"]]
            self.assertTrue(called, done.stdout)
            for path in called:
                self.assertLessEqual(path["call_p50_seconds"],
                                     path["call_p99_seconds"] or 99)

    def test_processes_are_listed(self):
        with Calls(self.serve()):
            self.until_it_answers(str(self.server.pid), "--count=1")
            done = run("top")
            self.check(done, 0)
            self.assertRegex(done.stdout,
                             rf"(?m)^ *{self.server.pid}  \S*penstock serve")

    def as_nobody(self, *arguments):
        """Runs penstock as a user who may not read the folder of the
        program."""
        program = ("import os, sys\n"
                   "program = os.open(sys.argv[1], os.O_RDONLY)\n"
                   "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
                   "os.chdir('/')\n"
                   "os.execve(program, ['penstock', *sys.argv[2:]], os.environ)")
        return subprocess.run(
            [sys.executable, "-c", program, PROGRAM, *arguments],
            capture_output=True, text=True, timeout=LIMIT, check=False,
            env=clean_environment())

    def test_another_users_processes_are_not_listed(self):
        if os.geteuid() != 0:
            self.skipTest("only root can become another user")
        with Calls(self.serve()):
            self.until_it_answers(str(self.server.pid), "--count=1")
            done = self.as_nobody("top")
            self.assertNotIn(str(self.server.pid), done.stdout)
            self.assertNotIn("another user", done.stdout)
            self.assertEqual((done.returncode, done.stderr), (
                1, "penstock top: no process of this user's with a connection "
                "over Penstock in this network namespace\n"))
            # Expects that a user who names the process by its number gets the
            # reason.
            done = self.as_nobody("top", str(self.server.pid))
            self.assertIn("answers its own user and root", done.stderr)

    def test_the_list_is_json_too(self):
        with Calls(self.serve()):
            self.until_it_answers(str(self.server.pid), "--count=1")
            done = run("top", "--json")
            self.check(done, 0)
            commands = {each["pid"]: each["command"]
                        for each in json.loads(done.stdout)["processes"]}
            self.assertIn("penstock serve", commands[self.server.pid])

    def test_it_ends_with_the_process(self):
        with Calls(self.serve()) as client:
            self.until_it_answers(str(client.pid), "--count=1")
            top = subprocess.Popen(
                [PROGRAM, "top", str(client.pid), "-i", "0.2"], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                env=clean_environment())
            while "Connections" not in top.stdout.readline():
                pass
            client.kill()
            _, complaint = top.communicate(timeout=LIMIT)
            self.assertEqual(top.returncode, 0, complaint)
            self.assertIn("answers no more", complaint)

    def test_metrics_of_a_port(self):
        address = self.serve(env={"PENSTOCK_METRICS": "9471"})
        with Calls(address):
            done = self.until_it_answers("127.0.0.1:9471", "--count=1")
            self.check(done, 0)
            self.assertRegex(done.stdout, r"\nas server  [1-9]")
            self.assertNotIn("Connections", done.stdout)

    def test_who_does_not_answer_is_told_apart(self):
        for where, said in (("1", "does not answer"),
                            ("127.0.0.1:1", "127.0.0.1:1"),
                            ("no.invalid:80", "no.invalid")):
            done = run("top", where, "--count=1")
            self.check(done, 1)
            self.assertIn(said, done.stderr)
        done = run("top", "999999999")  # above the kernel's highest number
        self.check(done, 1)
        self.assertIn("there is no process 999999999", done.stderr)
        for where in ("0", "-1", "x", "99999999999999999999"):
            self.check(run("top", where), 2)

    def test_other_servers_are_no_processes_of_ours(self):
        """Tests ports that answer with garbage, or with metrics of other
        programs."""
        answers = {"/metrics": b"up 1\n", "/garbage": b"{{{ \xff\n",
                   "/endless": b"penstock_sessions 1\n" * 2_000_000}

        class Handler(http.server.BaseHTTPRequestHandler):

            def do_GET(self):
                self.send_response(200 if self.path in answers else 404)
                self.end_headers()
                self.wfile.write(answers.get(self.path, b""))

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        base = "http://127.0.0.1:%d" % server.server_address[1]
        for path, said in (("/metrics", "none of Penstock's"),
                           ("/garbage", "not a line of Prometheus' format"),
                           ("/endless", base), ("/nothing", "404")):
            done = run("top", base + path, "--count=1")
            self.check(done, 1)
            self.assertIn(said, done.stderr)
            self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    os.environ.pop("PENSTOCK_LIBRARY", None)
    unittest.main(verbosity=2)
