#!/usr/bin/env python3
"""Shows the page of `rpc --html` in headless Chromium, and checks its pixels.

Skips itself, with a message, if chromium-headless-shell is missing.
"""

import html
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zlib

RPC = "bench/rpc/rpc"
CHROMIUM = shutil.which("chromium-headless-shell")
MISSING = ("chromium-headless-shell is not installed: "
           "apt-get install chromium-headless-shell")
# The colours of the page.
COLOURS = {"tcp": (0xd6, 0x27, 0x28), "uds": (0xff, 0x7f, 0x0e),
           "shm": (0x1f, 0x77, 0xb4), "verbs": (0x2c, 0xa0, 0x2c)}
WINDOW = (1300, 3000)
# Reports where the canvases are, and the text of their legends.
PROBE = """<script>
document.body.dataset.probe = JSON.stringify(
    [...document.querySelectorAll("canvas")].map(canvas => {
      const {x, y, width, height} = canvas.getBoundingClientRect();
      const legend = Chart.getChart(canvas).legend;
      return {x, y, width, height, legendBottom: legend.bottom,
              legendTop: legend.top,
              legend: legend.legendItems.map(item => item.text)};
    }));
</script>"""


def unfilter(kind, line, above, bpp):
    """Undoes a PNG filter on one line, in place."""
    for i in range(len(line)):
        left = line[i - bpp] if i >= bpp else 0
        up = above[i]
        corner = above[i - bpp] if i >= bpp else 0
        if kind == 1:
            add = left
        elif kind == 2:
            add = up
        elif kind == 3:
            add = (left + up) // 2
        elif kind == 4:
            estimate = left + up - corner
            add = min((left, up, corner),
                      key=lambda value: abs(estimate - value))
        else:
            return
        line[i] = (line[i] + add) & 0xff


class Picture:
    """A PNG with 8 bits a channel."""

    def __init__(self, data):
        assert data[:8] == b"\x89PNG\r\n\x1a\n"
        at, body = 8, b""
        while at < len(data):
            size, kind = struct.unpack(">I4s", data[at:at + 8])
            chunk = data[at + 8:at + 8 + size]
            if kind == b"IHDR":
                self.width, self.height, depth, colour = struct.unpack(
                    ">IIBB", chunk[:10])
                assert depth == 8 and colour in (2, 6), (depth, colour)
                self.bpp = 3 if colour == 2 else 4
            elif kind == b"IDAT":
                body += chunk
            at += size + 12
        body, stride = zlib.decompress(body), self.width * self.bpp
        self.lines, above = [], bytearray(stride)
        for y in range(self.height):
            start = y * (stride + 1)
            line = bytearray(body[start + 1:start + 1 + stride])
            unfilter(body[start], line, above, self.bpp)
            self.lines.append(line)
            above = line

    def pixels(self, x, y, width, height):
        for line in self.lines[int(y):int(y + height)]:
            for at in range(int(x), int(x + width)):
                yield tuple(line[at * self.bpp:at * self.bpp + 3])


def count(pixels, colour):
    return sum(max(abs(a - b) for a, b in zip(pixel, colour)) < 24
               for pixel in pixels)


def chromium(*flags):
    with tempfile.TemporaryDirectory() as home:
        return subprocess.run(
            [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu",
             "--hide-scrollbars", f"--user-data-dir={home}",
             f"--window-size={WINDOW[0]},{WINDOW[1]}", *flags],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            timeout=120, env={**os.environ, "HOME": home}).stdout


@unittest.skipUnless(CHROMIUM, MISSING)
class PageTest(unittest.TestCase):

    def look_at(self, *flags):
        """Returns the page's text about its canvases, and a picture."""
        folder = pathlib.Path(self.enterContext(tempfile.TemporaryDirectory()))
        page, shot = folder / "page.html", folder / "page.png"
        subprocess.run([RPC, "--rounds=1", f"--html={page}", *flags],
                       check=True, stdout=subprocess.DEVNULL)
        page.write_text(page.read_text() + PROBE)
        text = chromium("--dump-dom", page.as_uri()).decode()
        probe = json.loads(html.unescape(
            re.search(r'data-probe="([^"]*)"', text)[1]))
        chromium(f"--screenshot={shot}", page.as_uri())
        kept = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR")
        if kept:
            shutil.copy(shot, pathlib.Path(kept) / f"{self.id()}.png")
        return probe, Picture(shot.read_bytes())

    def check(self, canvas, picture, transports):
        self.assertEqual([text for text in canvas["legend"] if text],
                         transports)
        box = [canvas[name] for name in ("x", "y", "width", "height")]
        legend = [canvas["x"], canvas["y"] + canvas["legendTop"],
                  canvas["width"], canvas["legendBottom"] - canvas["legendTop"]]
        for name, colour in COLOURS.items():
            in_legend = count(picture.pixels(*legend), colour)
            in_plot = count(picture.pixels(*box), colour) - in_legend
            if name in transports:
                self.assertGreater(in_legend, 10, name)
                self.assertGreater(in_plot, 30, name)
            else:
                self.assertEqual(in_legend + in_plot, 0, name)
        # Counts the pixels of the axes and their marks, which are dark.
        dark = sum(max(pixel) < 160 for pixel in picture.pixels(*box))
        self.assertGreater(dark, 200)

    def test_each_transport_has_its_line(self):
        canvases, picture = self.look_at(
            "--benchmark=latency,push", "--api=sync", "--rpcs=20",
            "--sizes=8,64KiB,1MiB", "--transports=tcp,uds,shm")
        self.assertEqual(len(canvases), 4)
        for canvas in canvases:
            self.check(canvas, picture, ["tcp", "uds", "shm"])

    def test_a_replay_has_bars(self):
        with tempfile.NamedTemporaryFile("w", suffix=".trace") as trace:
            trace.write('{"penstock_recording":1}\n')
            for call in range(20):
                trace.write(json.dumps({
                    "call": call, "client": 1, "method": "/a", "at": call,
                    "messages": [[0, "<", 8], [1, ">", 100000]], "end": 1,
                    "status": 0}) + "\n")
            trace.flush()
            canvases, picture = self.look_at(
                "--benchmark=replay", f"--trace={trace.name}",
                "--transports=tcp,shm")
        self.assertEqual(len(canvases), 2)
        for canvas in canvases:
            self.check(canvas, picture, ["tcp", "shm"])


def report_skipped():
    """Writes the reason into the report that tools/test counts."""
    report = os.environ.get("XML_OUTPUT_FILE")
    if report:
        pathlib.Path(report).write_text(
            '<testsuites><testsuite name="page_test" tests="1"><testcase '
            f'name="PageTest"><skipped message="{MISSING}"/></testcase>'
            "</testsuite></testsuites>")


if __name__ == "__main__":
    if CHROMIUM is None:
        report_skipped()
    unittest.main(argv=sys.argv[:1], verbosity=2)
