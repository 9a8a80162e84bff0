#!/usr/bin/env python3
"""The port of PENSTOCK_METRICS, as a scraper finds it, and bad ones.

The server is examples/greeter's: it has no line of code about metrics.
"""

import concurrent.futures
import http.client
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest

from prometheus_client.parser import text_string_to_metric_families

GREETER = pathlib.Path("examples/greeter")
LIMIT_S = 30


class Server:
    """A greeter_server, and what it has said."""

    def __init__(self, **environment):
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [GREETER / "greeter_server", "127.0.0.1:0"], text=True,
            stdout=subprocess.PIPE, stderr=self.log,
            env={**os.environ, **environment})
        self.port = int(self.process.stdout.readline().split()[-1])

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def metrics_port(self):
        return int(re.search(r"metrics are served on port (\d+)",
                             self.said())[1])

    def greet(self, **environment):
        return subprocess.run(
            [GREETER / "greeter_client", f"127.0.0.1:{self.port}"], text=True,
            capture_output=True, timeout=LIMIT_S, check=True,
            env={**os.environ, **environment}).stdout

    def end(self, how=signal.SIGKILL):
        self.process.send_signal(how)
        self.process.wait(LIMIT_S)
        self.process.stdout.close()
        self.log.close()


def scrape(port, path="/metrics"):
    connection = http.client.HTTPConnection("127.0.0.1", port,
                                            timeout=LIMIT_S)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


def ours(text):
    return [family for family in text_string_to_metric_families(text)
            if family.name.startswith("penstock_")]


def value(text, name, **labels):
    return sum(sample.value for family in ours(text)
               for sample in family.samples
               if sample.name == name and
               labels.items() <= sample.labels.items())


class PortTest(unittest.TestCase):

    def serve(self, **environment):
        server = Server(**environment)
        self.addCleanup(server.end)
        return server

    def test_prometheus_can_read_it(self):
        server = self.serve(PENSTOCK_METRICS="0")
        server.greet()
        status, text = scrape(server.metrics_port())
        self.assertEqual(status, 200)
        families = ours(text)
        self.assertGreater(len(families), 20)
        for family in families:
            self.assertIn(family.type, ("counter", "gauge", "histogram"))
            self.assertTrue(family.documentation, family.name)
            self.assertTrue(family.samples, family.name)
        self.assertEqual(value(text, "penstock_sessions_started_total",
                               role="server"), 1)
        self.assertEqual(value(text, "penstock_messages_total",
                               direction="received"), 1)

    def test_promtool_finds_no_fault(self):
        promtool = shutil.which("promtool")
        if promtool is None:
            self.skipTest("no promtool (Debian package prometheus)")
        server = self.serve(PENSTOCK_METRICS="0")
        server.greet()
        _, text = scrape(server.metrics_port())
        # The library's own metrics are not ours to name.
        lines = [line for line in text.splitlines(True)
                 if "exposer_" not in line]
        checked = subprocess.run([promtool, "check", "metrics"], text=True,
                                 input="".join(lines), capture_output=True,
                                 timeout=LIMIT_S, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_it_listens_at_loopback_only(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = f":{server.metrics_port():04X}"
        # Others may have the same port of another address.
        sockets = {os.readlink(fd) for fd in
                   pathlib.Path(f"/proc/{server.process.pid}/fd").iterdir()}
        found = [columns[1]
                 for table in ("/proc/net/tcp", "/proc/net/tcp6")
                 for columns in map(
                     str.split,
                     pathlib.Path(table).read_text("ascii").splitlines())
                 if columns[1].endswith(port) and columns[3] == "0A" and
                 f"socket:[{columns[9]}]" in sockets]
        self.assertEqual(found, ["0100007F" + port])

    def test_without_the_variable_nothing_listens(self):
        server = self.serve(PENSTOCK_METRICS="0")
        other = self.serve()
        self.assertIn("metrics are served", server.said())
        self.assertNotIn("metrics", other.said())

    def test_a_port_that_is_taken_costs_one_line(self):
        with socket.create_server(("127.0.0.1", 0)) as taken:
            server = self.serve(
                PENSTOCK_METRICS=str(taken.getsockname()[1]))
            self.assertIn("Hello", server.greet())
            self.assertEqual(server.said().count("cannot serve metrics"), 1)

    def test_a_bad_address_costs_one_line(self):
        server = self.serve(PENSTOCK_METRICS="here")
        self.assertIn("Hello", server.greet())
        self.assertEqual(server.said().count("PENSTOCK_METRICS=here"), 1)

    def test_other_paths_are_not_found(self):
        server = self.serve(PENSTOCK_METRICS="0")
        for path in ("/", "/../etc/passwd", "/metrics/../../etc/passwd"):
            status, text = scrape(server.metrics_port(), path)
            self.assertEqual(status, 404, path)
            self.assertNotIn("root:", text)

    def test_thousands_of_scrapes_leave_nothing_behind(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        descriptors = pathlib.Path(f"/proc/{server.process.pid}/fd")
        for _ in range(50):
            scrape(port)
        before = len(list(descriptors.iterdir()))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for status, _ in pool.map(lambda _: scrape(port), range(2000)):
                self.assertEqual(status, 200)
        self.assertLessEqual(len(list(descriptors.iterdir())), before + 4)
        self.assertIn("Hello", server.greet())

    def test_scrapers_that_never_read_or_ask_do_not_keep_others_out(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        stuck = []
        for request in (b"", b"GET /metrics HTTP/1.1\r\n\r\n" * 500):
            for _ in range(3):
                client = socket.create_connection(("127.0.0.1", port))
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1)
                client.setblocking(False)
                try:
                    client.send(request)
                except BlockingIOError:
                    pass
                stuck.append(client)
        begin = time.monotonic()
        self.assertIn("Hello", server.greet())
        self.assertLess(time.monotonic() - begin, 5)
        self.assertEqual(scrape(port)[0], 200)
        for client in stuck:
            client.close()

    def test_killed_clients_are_gone_from_the_gauges(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        for i in range(20):
            with subprocess.Popen(
                    [GREETER / "greeter_client", f"127.0.0.1:{server.port}"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as client:
                if i % 2 == 0:  # one that is connected, as its log says
                    client.stderr.readline()
                client.kill()
        limit = time.monotonic() + LIMIT_S
        while time.monotonic() < limit:
            _, text = scrape(port)
            if value(text, "penstock_sessions") == 0:
                break
        self.assertEqual(value(text, "penstock_sessions"), 0)
        self.assertEqual(value(text, "penstock_streams"), 0)
        self.assertEqual(
            value(text, "penstock_sessions_started_total"),
            value(text, "penstock_sessions_ended_total"))

    def test_the_process_may_end_during_a_scrape(self):
        for _ in range(10):
            server = Server(PENSTOCK_METRICS="0")
            port = server.metrics_port()
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                scrapes = [pool.submit(scrape, port) for _ in range(50)]
                server.process.send_signal(signal.SIGTERM)
                for each in scrapes:
                    try:
                        each.result(LIMIT_S)
                    except (OSError, http.client.HTTPException):
                        pass
            self.assertEqual(server.process.wait(LIMIT_S), -signal.SIGTERM)
            server.process.stdout.close()
            server.log.close()


if __name__ == "__main__":
    unittest.main()
