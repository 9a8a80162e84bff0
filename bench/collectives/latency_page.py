#!/usr/bin/env python3
"""Draws the latencies that compare.py measured: one plot for each operation.

Usage: latency_page.py ROWS.json --svg=FILE [--html=FILE]

ROWS.json is a file of compare.py --json. Both axes are logarithmic. The HTML
page also has a table of the times.
"""

import argparse
import html
import json
import math

COLORS = ["#4e79a7", "#e15759", "#59a14f", "#f28e2b", "#b07aa1", "#76b7b2",
          "#edc948"]
WIDTH, HEIGHT, LEFT, TOP, BOTTOM, RIGHT = 420, 260, 60, 28, 24, 150


def short(size):
    for unit in ("B", "K", "M"):
        if size < 1024:
            return f"{size}{unit}"
        size //= 1024
    return f"{size}G"


def groups(rows):
    """Returns the rows of each operation and number of ranks."""
    found = {}
    for row in rows:
        found.setdefault((row["operation"], row["ranks"]), []).append(row)
    return found


def decades(rows):
    """Returns the powers of ten that enclose all times."""
    times = [row["p50_us"] for row in rows]
    lowest = math.floor(math.log10(min(times)))
    return lowest, max(lowest + 1, math.ceil(math.log10(max(times))))


def draw(rows):
    """Returns the text of an SVG."""
    panels = groups(rows)
    colors = dict(zip(dict.fromkeys(row["library"] for row in rows),
                      COLORS * len(rows)))
    width, height = LEFT + WIDTH + RIGHT, TOP + HEIGHT + BOTTOM
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
             f'height="{height * len(panels)}" font-family="sans-serif" '
             'font-size="10">',
             f'<rect width="{width}" height="{height * len(panels)}" '
             'fill="white"/>']
    for number, ((operation, ranks), mine) in enumerate(panels.items()):
        parts.append(f'<g transform="translate(0,{number * height})">')
        parts += panel(mine, f"{operation}, {ranks} ranks", colors)
        parts.append("</g>")
    return "\n".join(parts + ["</svg>"]) + "\n"


def panel(rows, title, colors):
    sizes = sorted({row["bytes"] for row in rows})
    lowest, highest = decades(rows)

    def place(row):
        x = LEFT + WIDTH * (sizes.index(row["bytes"]) + 0.5) / len(sizes)
        part = (math.log10(row["p50_us"]) - lowest) / (highest - lowest)
        return x, TOP + HEIGHT * (1 - part)

    parts = [f'<text x="{LEFT}" y="16" font-size="13">{html.escape(title)}'
             "</text>"]
    for decade in range(lowest, highest + 1):
        y = TOP + HEIGHT * (highest - decade) / (highest - lowest)
        parts.append(f'<path d="M{LEFT} {y:.1f}h{WIDTH}" stroke="#ccc"/>'
                     f'<text x="{LEFT - 6}" y="{y + 3:.1f}" '
                     f'text-anchor="end">{10.0 ** decade:g} us</text>')
    for number, size in enumerate(sizes):
        x = LEFT + WIDTH * (number + 0.5) / len(sizes)
        parts.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 14}" '
                     f'text-anchor="middle">{short(size)}</text>')
    libraries = list(dict.fromkeys(row["library"] for row in rows))
    for number, library in enumerate(libraries):
        places = [place(row) for row in sorted(
            rows, key=lambda row: row["bytes"]) if row["library"] == library]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        color = colors[library]
        parts.append(f'<polyline points="{line}" fill="none" '
                     f'stroke="{color}" stroke-width="1.5"/>')
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" '
                  f'fill="{color}"/>' for x, y in places]
        parts.append(f'<text x="{LEFT + WIDTH + 10}" '
                     f'y="{TOP + 12 + 16 * number}" fill="{color}">'
                     f'{html.escape(library)}</text>')
    return parts


def table(rows):
    """Returns the text of an HTML table: a row for each size, a column for each
    library."""
    libraries = list(dict.fromkeys(row["library"] for row in rows))
    parts = ["<table><tr><th>operation<th>ranks<th>bytes"
             + "".join(f"<th>{html.escape(name)}" for name in libraries)]
    for (operation, ranks), mine in groups(rows).items():
        for size in sorted({row["bytes"] for row in mine}):
            times = {row["library"]: f"{row['p50_us']:.2f}" for row in mine
                     if row["bytes"] == size}
            parts.append(
                f"<tr><td>{html.escape(operation)}<td>{ranks}<td>{size}"
                + "".join(f"<td>{times.get(name, '')}" for name in libraries))
    return "\n".join(parts + ["</table>"]) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("rows")
    parser.add_argument("--svg", required=True)
    parser.add_argument("--html")
    options = parser.parse_args()
    with open(options.rows, encoding="utf-8") as file:
        rows = json.load(file)
    picture = draw(rows)
    with open(options.svg, "w", encoding="utf-8") as file:
        file.write(picture)
    if options.html:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write("<!doctype html><meta charset=utf-8><title>Latencies of "
                       "collectives</title>\n<p>Medians in microseconds.</p>\n"
                       + picture + table(rows))


if __name__ == "__main__":
    main()
