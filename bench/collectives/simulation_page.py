#!/usr/bin/env python3
"""Draws the output of simulation.cc: the fastest algorithm by ranks and bytes.

Usage: simulation_page.py < rows.json --svg=FILE [--html=FILE]

Rows are rank counts, columns are sizes, and colors are algorithms. The HTML
page shows the same picture; a pointer over a cell shows the estimated times.
"""

import argparse
import html
import json
import sys

COLORS = {
    "recursive doubling": "#4e79a7", "halving-doubling": "#59a14f",
    "ring": "#f28e2b", "hierarchical": "#e15759", "bruck": "#4e79a7",
    "binomial tree": "#76b7b2", "chain": "#b07aa1",
    "scatter and all-gather": "#edc948",
}
CELL, LEFT, TOP, GAP = 22, 60, 24, 40


def short(size):
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size}{unit}"
        size //= 1024
    raise ValueError(size)


def draw(rows, has_times):
    """Returns the text of an SVG. With `has_times`, a pointer over a cell shows
    the times.
    """
    sizes = sorted({row["bytes"] for row in rows})
    ranks = sorted({row["ranks"] for row in rows})
    operations = list(dict.fromkeys(row["operation"] for row in rows))
    width = LEFT + len(sizes) * CELL + 190
    each = TOP + len(ranks) * CELL + GAP
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{each * len(operations)}" font-family="sans-serif" '
             'font-size="10">',
             f'<rect width="{width}" height="{each * len(operations)}" '
             'fill="white"/>']
    for index, operation in enumerate(operations):
        mine = [row for row in rows if row["operation"] == operation]
        parts += panel(mine, operation, index * each, sizes, ranks, has_times)
    return "\n".join(parts + ["</svg>"]) + "\n"


def panel(rows, operation, top, sizes, ranks, has_times):
    parts = [f'<text x="{LEFT}" y="{top + 14}" font-size="13">{operation}'
             "</text>"]
    for row in rows:
        x = LEFT + sizes.index(row["bytes"]) * CELL
        y = top + TOP + ranks.index(row["ranks"]) * CELL
        cell = (f'<rect x="{x}" y="{y}" width="{CELL - 1}" '
                f'height="{CELL - 1}" fill="{COLORS[row["algorithm"]]}"')
        parts.append(cell + (f">{times_of(row)}</rect>" if has_times else "/>"))
    for number, count in enumerate(ranks):
        parts.append(f'<text x="{LEFT - 6}" text-anchor="end" '
                     f'y="{top + TOP + number * CELL + 15}">{count}</text>')
    for number, size in enumerate(sizes):
        parts.append(f'<text x="{LEFT + number * CELL}" '
                     f'y="{top + TOP + len(ranks) * CELL + 12}" '
                     f'font-size="8">{short(size)}</text>')
    used = list(dict.fromkeys(row["algorithm"] for row in rows))
    for number, name in enumerate(used):
        x, y = LEFT + len(sizes) * CELL + 12, top + TOP + number * 18
        parts.append(f'<rect x="{x}" y="{y}" width="12" height="12" '
                     f'fill="{COLORS[name]}"/><text x="{x + 18}" '
                     f'y="{y + 10}">{name}</text>')
    return parts


def times_of(row):
    times = ", ".join(f"{name} {us:.0f} us" for name, us in row["us"].items())
    return (f"<title>{row['ranks']} ranks, {short(row['bytes'])}: "
            f"{html.escape(times)}</title>")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--svg", required=True)
    parser.add_argument("--html")
    options = parser.parse_args()
    rows = [json.loads(line) for line in sys.stdin]
    with open(options.svg, "w", encoding="utf-8") as file:
        file.write(draw(rows, has_times=False))
    if options.html:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write("<!doctype html><meta charset=utf-8><title>Algorithms"
                       "</title>\n" + draw(rows, has_times=True))


if __name__ == "__main__":
    main()
