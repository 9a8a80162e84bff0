"""Computes medians over the rounds, and their ratio to stock gRPC's."""

import statistics

STOCK = "tcp"


def cpu_us(result):
    """Returns the CPU time per call of both processes, in microseconds."""
    used = sum(stats["timeUser"] + stats["timeSystem"]
               for stats in result["clientStats"] + result["serverStats"])
    return used / float(result["latencies"]["count"]) * 1e6


class Figures:
    """The figures of one scenario over one transport, by round."""

    def __init__(self):
        self._rounds = {}

    def add(self, number, result):
        summary = result["summary"]
        rate = summary["qps"]
        self._rounds[number] = (
            summary["latency50"] / 1e3, summary["latency99"] / 1e3, rate,
            result.get("readPerSecond", rate), cpu_us(result))

    def medians(self):
        return [statistics.median(column)
                for column in zip(*self._rounds.values())]

    def rates_of(self, other):
        """Returns the ratio of this read rate to another transport's, for each
        round that both have."""
        return [self._rounds[number][3] / other._rounds[number][3]
                for number in sorted(self._rounds.keys() & other._rounds)]


def number(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def line(scenario, transport, figures, stock):
    cells = [scenario, transport, *map(number, figures.medians())]
    ratios = figures.rates_of(stock) if stock and stock is not figures else []
    if not ratios:
        return cells + [""]
    text = f"{statistics.median(ratios):.2f}"
    if len(ratios) > 1:
        text += f" ({min(ratios):.2f}-{max(ratios):.2f})"
    return cells + [text]


HEAD = ["scenario", "transport", "p50 us", "p99 us", "calls/s", "read/s",
        "CPU us", "of tcp"]


def render(measured):
    """Returns a table as text. `measured` is {(scenario, transport): Figures},
    in the order of the rows."""
    rows = [HEAD, ["---"] * len(HEAD)]
    for (scenario, transport), figures in measured.items():
        rows.append(line(scenario, transport, figures,
                         measured.get((scenario, STOCK))))
    widths = [max(len(row[i]) for row in rows) for i in range(len(HEAD))]
    return "\n".join(
        "| " + " | ".join(
            cell.ljust(width) if cell != "---" else "-" * width
            for cell, width in zip(row, widths)) + " |" for row in rows)
