#!/usr/bin/python3
"""Draws the plots of README.md and docs/ from the benchmark's own results.

  bazel-bin/bench/rpc/rpc --api=sync --json=RESULTS.json
  bench/rpc/plot.py RESULTS.json docs/images/latency.svg

A plot shows one benchmark, API, number of buffers and scheme over the message
size, log-log, with one line per transport. Flags select one of several in a
file. The default is the median, with a band up to the 99th percentile;
--what=bandwidth shows MB/s. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import io
import json
import math
import sys

# The colour of each transport in all plots. page.html has its own colours.
COLOURS = {"tcp": "#7f7f7f", "uds": "#bcbd22", "inproc": "#8c564b",
           "penstock-tcp": "#1f77b4", "shm": "#d62728", "verbs": "#2ca02c",
           "tls": "#000000", "penstock-tls": "#9467bd", "shm-tls": "#ff7f0e",
           "penstock-client": "#17becf", "penstock-server": "#e377c2"}
NAMES = {"tcp": "gRPC over TCP", "uds": "gRPC over a UNIX socket",
         "inproc": "gRPC in one process", "penstock-tcp": "Penstock over TCP",
         "shm": "Penstock over shm", "verbs": "Penstock over RDMA",
         "tls": "gRPC over TLS", "penstock-tls": "Penstock over TLS",
         "shm-tls": "Penstock over shm, with TLS",
         "penstock-client": "Penstock's client, gRPC's server",
         "penstock-server": "gRPC's client, Penstock's server"}


def size_text(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} TiB"


# The properties that must have one value each in a plot.
CHOICES = ("benchmark", "api", "buffers", "scheme")


def die(what):
    print(f"plot.py: {what}", file=sys.stderr)
    raise SystemExit(2)


def read(path):
    """Returns the measured rows of a result file."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        die(f"{path}: {error}")
    if not isinstance(rows, list):
        die(f"{path}: no results of bench/rpc")
    return [row for row in rows
            if isinstance(row, dict) and row.get("p50_us") is not None]


def choose(rows, flags):
    """Returns the rows that the flags select. Several values need a flag."""
    for name in CHOICES:
        wanted = getattr(flags, name)
        values = sorted({str(row[name]) for row in rows if name in row})
        if wanted is None and len(values) > 1:
            die(f"which --{name}? {', '.join(values)}")
        if wanted is not None:
            rows = [row for row in rows if str(row.get(name)) == wanted]
    if not rows:
        die(f"{flags.results}: nothing was measured")
    return rows


def lines(rows, keys):
    """Returns {transport: points}, in the order of the table. A point has the
    values of `keys`, and points are ordered by size."""
    found = {}
    for row in rows:
        name, point = row.get("transport"), [row.get(key) for key in keys]
        if not isinstance(name, str):
            die("a result without its transport")
        for key, value in zip(keys, point):
            if (isinstance(value, bool) or not isinstance(value, (int, float))
                    or not math.isfinite(value) or value <= 0):
                die(f"{name}: {key} is no number above 0: {value!r}")
        of_name = found.setdefault(name, {})
        if point[0] in of_name:
            die(f"{name}: {size_text(point[0])} was measured twice")
        of_name[point[0]] = point
    return {name: list(zip(*(points[size] for size in sorted(points))))
            for name, points in found.items()}


def draw(rows, what, title):
    """Returns the plot as SVG bytes."""
    keys = (("bytes", "p50_us", "p99_us") if what == "latency"
            else ("bytes", "mb_per_s"))
    drawn = lines(rows, keys)
    try:
        import matplotlib
    except ImportError as error:
        die(f"{error} (Debian: python3-matplotlib)")
    matplotlib.use("svg")
    # Keeps text as text, and makes the output deterministic.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "plot",
                                "font.family": "sans-serif", "font.size": 11})
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7.5, 4.2))
    for name, (sizes, *values) in drawn.items():
        axes.plot(sizes, values[0], marker="o", markersize=4,
                  color=COLOURS.get(name),
                  linewidth=2.5 if name in ("shm", "verbs") else 1.5,
                  label=NAMES.get(name, name))
        if what == "latency":
            axes.fill_between(sizes, *values, alpha=0.12,
                              color=COLOURS.get(name), linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    sizes = sorted({row["bytes"] for row in rows})
    axes.set_xticks(sizes, [size_text(size) for size in sizes], rotation=30)
    axes.minorticks_off()
    axes.set_xlabel("message, there and back" if what == "latency"
                    else "message")
    axes.set_ylabel("µs, median to p99"
                    if what == "latency" else "MB/s")
    axes.grid(True, which="major", alpha=0.3)
    # A $ does not start a formula.
    axes.set_title(title, parse_math=False)
    for text in axes.legend(frameon=False).get_texts():
        text.set_parse_math(False)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    svg = io.BytesIO()
    figure.savefig(svg, format="svg", metadata={"Date": None})
    return svg.getvalue()


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", help="a file of rpc --json")
    parser.add_argument("svg", help="where to draw")
    parser.add_argument("--what", choices=("latency", "bandwidth"),
                        default="latency")
    for name in CHOICES:
        parser.add_argument(f"--{name}", help="one of those in the file")
    parser.add_argument("--title", default="")
    flags = parser.parse_args()
    rows = choose(read(flags.results), flags)
    svg = draw(rows, flags.what, flags.title)
    try:
        with open(flags.svg, "wb") as file:
            file.write(svg)
    except OSError as error:
        die(f"{flags.svg}: {error.strerror}")


if __name__ == "__main__":
    main()
