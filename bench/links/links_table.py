"""Makes tables of the results of bench/links.

A record is one link under one setting: {"fabric", "group", "link", "setting",
"samples": {name: time}, "sizes": [smallest, largest size in use]}.
"""

import math
import statistics

from links_plan import ADAPTIVE, size_name

FAILED = math.inf


def cost(samples, names):
    """Returns the geometric mean of the times with these names. Infinite if a
    time is missing."""
    if not names or any(name not in samples for name in names):
        return FAILED
    return statistics.geometric_mean(samples[name] for name in names)


def ratios(records):
    """Returns {setting: ratio} of a link. The ratio is the setting's cost,
    divided by the cost of the best fixed setting."""
    names = set().union(*(record["samples"] for record in records))
    costs = {record["setting"]: cost(record["samples"], names)
             for record in records}
    best = min((value for setting, value in costs.items()
                if setting != ADAPTIVE), default=FAILED)
    if best == FAILED:
        return {setting: FAILED for setting in costs}
    return {setting: value / best for setting, value in costs.items()}


def by_link(records):
    """Groups records by their link. Returns {link: its records}, in order."""
    links = {}
    for record in records:
        links.setdefault(record["link"], []).append(record)
    return links


def over_all(table, setting):
    """Returns the maximum and the geometric mean of a setting's ratios over
    all links."""
    values = [row.get(setting, FAILED) for row in table.values()]
    if FAILED in values:
        return FAILED, FAILED
    return max(values), statistics.geometric_mean(values)


def figure(value):
    return "failed" if value == FAILED else f"{value:.2f}"


def chosen(records):
    """Returns a text with the sizes that the adaptive setting used at the end.
    """
    sizes = [record["sizes"] for record in records
             if record["setting"] == ADAPTIVE and record["sizes"]]
    if not sizes:
        return "-"
    least, most = min(map(min, sizes)), max(map(max, sizes))
    if least == most:
        return size_name(least)
    return f"{size_name(least)} to {size_name(most)}"


def markdown(rows):
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def ratio_table(records):
    """Returns a table of ratios: a row per link, and a summary of each setting
    over all links."""
    links = by_link(records)
    table = {link: ratios(of_link) for link, of_link in links.items()}
    settings = list(dict.fromkeys(record["setting"] for record in records))
    rows = [["Link", "found", *settings]]
    for link, row in table.items():
        rows.append([link, chosen(links[link])] +
                    [figure(row.get(setting, FAILED)) for setting in settings])
    summary = {setting: over_all(table, setting) for setting in settings}
    for i, title in enumerate(("**worst**", "**mean**")):
        rows.append([title, ""] +
                    [figure(summary[setting][i]) for setting in settings])
    return markdown(rows)


def time_table(records):
    """Returns a table of the times in milliseconds, and MB/s."""
    names = list(dict.fromkeys(name for record in records
                               for name in record["samples"]))
    rows = [["Link", "setting", *(name.replace(", a MB", ", MB/s")
                                  for name in names)]]
    for record in records:
        row = [record["link"], record["setting"]]
        for name in names:
            value = record["samples"].get(name)
            if value is None:
                row.append("failed")
            elif name.endswith(", a MB"):
                row.append(f"{1e6 / value:.2f}")
            else:
                row.append(f"{value / 1000:.2f}")
        rows.append(row)
    return markdown(rows)


def report(records, times=False):
    lines = []
    for fabric, group in dict.fromkeys((record["fabric"], record["group"])
                                       for record in records):
        part = [record for record in records
                if (record["fabric"], record["group"]) == (fabric, group)]
        lines += [f"{fabric}, {group}: cost / best fixed setting's cost", "",
                  ratio_table(part), ""]
        if times:
            lines += [f"{fabric}, {group}: ms (p50)", "", time_table(part), ""]
    return "\n".join(lines)
