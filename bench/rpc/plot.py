#!/usr/bin/python3
"""Draws the plots of README.md and docs/ from the benchmark's own results.

  bazel-bin/bench/rpc/rpc --api=sync --json=RESULTS.json
  bench/rpc/plot.py RESULTS.json docs/images/latency.svg

One plot of one benchmark and one API, log-log over the size of a message, one
line a transport. By default the median, with a band up to the 99th percentile;
with --what=bandwidth MB/s. Needs matplotlib (Debian: python3-matplotlib).
"""

import argparse
import json
import sys

# The same colours wherever a transport is drawn; see page.html.
COLOURS = {"tcp": "#7f7f7f", "uds": "#bcbd22", "inproc": "#8c564b",
           "penstock-tcp": "#1f77b4", "shm": "#d62728", "verbs": "#2ca02c"}
NAMES = {"tcp": "gRPC over TCP", "uds": "gRPC over a UNIX socket",
         "inproc": "gRPC in one process", "penstock-tcp": "Penstock over TCP",
         "shm": "Penstock over shm", "verbs": "Penstock over RDMA"}


def size_text(size):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:g} {unit}"
        size /= 1024
    return f"{size:g} TiB"


def read(path):
    """The rows of a result file that were measured."""
    try:
        with open(path, encoding="utf-8") as file:
            rows = json.load(file)
    except (OSError, ValueError) as error:
        raise SystemExit(f"plot.py: {path}: {error}") from error
    if not isinstance(rows, list):
        raise SystemExit(f"plot.py: {path}: no results of bench/rpc")
    return [row for row in rows
            if isinstance(row, dict) and row.get("p50_us") is not None]


def lines(rows):
    """{transport: its rows by size}, in the order of the table."""
    found = {}
    for row in rows:
        found.setdefault(row["transport"], []).append(row)
    return {name: sorted(of_name, key=lambda row: row["bytes"])
            for name, of_name in found.items()}


def draw(rows, what, title, out):
    import matplotlib
    matplotlib.use("svg")
    # Text as text, and the same bytes for the same results.
    matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "plot",
                                "font.family": "sans-serif", "font.size": 11})
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(figsize=(7.5, 4.2))
    for name, of_name in lines(rows).items():
        sizes = [row["bytes"] for row in of_name]
        key = "p50_us" if what == "latency" else "mb_per_s"
        axes.plot(sizes, [row[key] for row in of_name], marker="o",
                  markersize=4, color=COLOURS.get(name),
                  linewidth=2.5 if name in ("shm", "verbs") else 1.5,
                  label=NAMES.get(name, name))
        if what == "latency":
            axes.fill_between(sizes, [row["p50_us"] for row in of_name],
                              [row["p99_us"] for row in of_name], alpha=0.12,
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
    axes.set_title(title)
    axes.legend(frameon=False)
    figure.patch.set_facecolor("white")
    figure.tight_layout()
    figure.savefig(out, format="svg", metadata={"Date": None})


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("results", help="a file of rpc --json")
    parser.add_argument("svg", help="where to draw")
    parser.add_argument("--what", choices=("latency", "bandwidth"),
                        default="latency")
    parser.add_argument("--api", help="one of those in the file")
    parser.add_argument("--title", default="")
    flags = parser.parse_args()
    rows = read(flags.results)
    apis = sorted({row["api"] for row in rows})
    if flags.api is None and len(apis) > 1:
        raise SystemExit(f"plot.py: which --api? {', '.join(apis)}")
    rows = [row for row in rows if flags.api in (None, row["api"])]
    if not rows:
        raise SystemExit(f"plot.py: {flags.results}: nothing was measured")
    draw(rows, flags.what, flags.title, flags.svg)


if __name__ == "__main__":
    sys.exit(main())
