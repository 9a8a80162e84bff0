#!/usr/bin/env python3
"""Tests the port of PENSTOCK_METRICS as a scraper sees it, and invalid ports.

The server is examples/greeter's, whose code does not mention metrics.
"""

import collections
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
import threading
import time
import unittest

from prometheus_client.parser import text_string_to_metric_families

GREETER = pathlib.Path("examples/greeter")
LIMIT_S = 30


class Server:
    """Runs a greeter_server, and keeps its output."""

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


def raw(port, source="127.0.0.1"):
    """Returns a connection from an address of this host."""
    return socket.create_connection(("127.0.0.1", port), LIMIT_S,
                                    source_address=(source, 0))


def trickle(client, some):
    try:
        client.send(some)
    except OSError:  # the server has dropped the connection
        pass


def read_all(client):
    answer = b""
    with client:
        while some := client.recv(65536):
            answer += some
    return answer


def is_open(client):
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def dropped_after(client, begin):
    try:
        read_all(client)
    except ConnectionError:
        pass
    return time.monotonic() - begin


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
        checked = subprocess.run([promtool, "check", "metrics"], text=True,
                                 input=text, capture_output=True,
                                 timeout=LIMIT_S, check=False)
        self.assertEqual((checked.returncode, checked.stderr), (0, ""))

    def test_it_listens_at_loopback_only(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = f":{server.metrics_port():04X}"
        # Compares sockets instead of ports, because another program may have
        # the same port at another address.
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

    def test_headers_that_trickle_do_not_keep_others_out(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        clients = [raw(port) for _ in range(30)]
        begin = time.monotonic()
        longest = 0
        # Makes the clients send bytes all the time, but never the end of the
        # head.
        for i in range(70):
            for client in clients:
                trickle(client, b"GET /metrics HTTP/1.1\r\n" if i == 0
                        else b"a: b\r\n")
            asked = time.monotonic()
            self.assertEqual(scrape(port)[0], 200)
            longest = max(longest, time.monotonic() - asked)
            time.sleep(0.1)
        self.assertLess(longest, 2)
        # Expects that the port has closed all clients, because each has used
        # up its 5 s.
        for client in clients:
            self.assertLess(dropped_after(client, begin), LIMIT_S)

    def test_each_address_has_a_bound_and_the_oldest_go_first(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        other = raw(port, "127.0.0.1")
        other.send(b"GET /metrics HTTP/1.1\r\n")
        crowd = [raw(port, "127.0.0.2") for _ in range(500)]
        self.assertEqual(scrape(port)[0], 200)
        kept = [is_open(client) for client in crowd]
        self.assertEqual(kept, sorted(kept), "the oldest go first")
        self.assertGreater(sum(kept), 0)
        self.assertLessEqual(sum(kept), 32)
        # Expects an answer to a client with another address, because the limit
        # applies to each address.
        other.send(b"\r\n")
        self.assertIn(b"200 OK", read_all(other))
        descriptors = pathlib.Path(f"/proc/{server.process.pid}/fd")
        self.assertLess(len(list(descriptors.iterdir())), 100)

    def scrape_during_flood(self, port):
        """Scrapes until an answer comes. The port may drop the scraper as the
        oldest client of the host that floods it."""
        end = time.monotonic() + LIMIT_S
        while True:
            try:
                return scrape(port)[0]
            except ConnectionError:  # includes RemoteDisconnected
                if time.monotonic() > end:
                    raise

    def test_a_flood_keeps_nobody_out(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        ends = threading.Event()

        def flood(request):
            while not ends.is_set():
                client = raw(port)
                trickle(client, request)
                held.append(client)
                if len(held) > 400:
                    held.popleft().close()

        held = collections.deque()
        threads = [threading.Thread(target=flood, args=(request,))
                   for request in (b"", b"GET /metrics HTTP/1.1\r\n\r\n")]
        for thread in threads:
            thread.start()
        try:
            answers = [self.scrape_during_flood(port) for _ in range(20)]
        finally:
            ends.set()
            for thread in threads:
                thread.join()
        self.assertEqual(answers, [200] * 20)
        self.assertIn("Hello", server.greet())

    def test_heads_of_each_kind(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        for request, status in (
                (b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", b"200"),
                (b"GET /metrics?name=x HTTP/1.0\n\n", b"200"),
                (b"HEAD /metrics HTTP/1.1\r\n\r\n", b"200"),
                (b"POST /metrics HTTP/1.1\r\n\r\nbody", b"405"),
                (b"GET  /metrics HTTP/1.1\r\n\r\n", b"400"),
                (b"GET /metrics\r\n\r\n", b"400"),
                (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"400"),
                (b"\x16\x03\x01\x02\x00", b"400"),
                (b"GET /" + b"a" * 9000, b"400")):
            client = raw(port)
            client.sendall(request)
            answer = read_all(client)
            self.assertEqual(answer.split(b" ")[1], status, request)
            head, _, body = answer.partition(b"\r\n\r\n")
            length = int(re.search(rb"Content-Length: (\d+)", head)[1])
            self.assertEqual(len(body),
                             0 if request.startswith(b"HEAD") else length)

    def test_killed_clients_are_gone_from_the_gauges(self):
        server = self.serve(PENSTOCK_METRICS="0")
        port = server.metrics_port()
        for i in range(20):
            with subprocess.Popen(
                    [GREETER / "greeter_client", f"127.0.0.1:{server.port}"],
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as client:
                if i % 2 == 0:  # waits for the log line of a connection
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
