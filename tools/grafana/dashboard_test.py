#!/usr/bin/env python3
"""Tests that each query of the dashboard names existing metrics and labels."""

import json
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The labels that Prometheus adds to each series, and to histograms.
ADDED = {"instance", "le"}


def documented():
    """Returns {name of a series: its labels}, from the document."""
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    series = {}
    for name, kind, labels in re.findall(
            r"^\| `(penstock_\w+)` \| (\w+) \|([\w, ]*)\|", text, re.MULTILINE):
        names = {label.strip() for label in labels.split(",")} - {""}
        endings = ("_bucket", "_sum", "_count") if kind == "histogram" else ("",)
        series.update((name + ending, names) for ending in endings)
    return series


def values_of_labels():
    """Returns {label: its values}, of all metrics together."""
    text = (ROOT / "docs/operations.md").read_text("utf-8")
    values = {}
    for label, some in re.findall(r"^\| (\w+) \| [^|]+ \| (`[^|]+`) \|", text,
                                  re.MULTILINE):
        values.setdefault(label, set()).update(re.findall(r"`(\w+)`", some))
    return values


class DashboardTest(unittest.TestCase):

    def setUp(self):
        text = (ROOT / "tools/grafana/penstock.json").read_text("utf-8")
        self.dashboard = json.loads(text)
        self.targets = [(panel["title"], target)
                        for panel in self.dashboard["panels"]
                        for target in panel["targets"]]

    def test_each_query_names_series_that_there_are(self):
        series = documented()
        self.assertGreater(len(series), 30)
        queries = [target["expr"] for _, target in self.targets]
        queries += [variable["query"]
                    for variable in self.dashboard["templating"]["list"]
                    if variable["type"] == "query"]
        self.assertGreater(len(queries), 20)
        for query in queries:
            names = re.findall(r"penstock_\w+", query)
            self.assertTrue(names, query)
            self.assertLessEqual(set(names), series.keys(), query)

    def test_each_label_is_one_of_its_series(self):
        series = documented()
        for title, target in self.targets:
            query = target["expr"]
            labels = set.intersection(
                *(series[name] for name in re.findall(r"penstock_\w+", query)))
            used = {label for group in re.findall(r"by \(([^)]*)\)", query)
                    for label in re.split(r",\s*", group)}
            used |= set(re.findall(r"[{,](\w+)[=!]", query))
            self.assertLessEqual(used, labels | ADDED, title)
            shown = set(re.findall(r"{{(\w+)}}", target["legendFormat"]))
            self.assertLessEqual(shown, used, title)

    def test_each_value_of_a_label_is_one_that_it_has(self):
        values = values_of_labels()
        for title, target in self.targets:
            for label, value in re.findall(r'(\w+)!?="([^"$]*)"',
                                           target["expr"]):
                self.assertIn(value, values[label], title)

    def test_panels_have_ids_and_places_of_their_own(self):
        panels = self.dashboard["panels"]
        for key in (lambda panel: panel["id"],
                    lambda panel: (panel["gridPos"]["x"],
                                   panel["gridPos"]["y"])):
            self.assertEqual(len({key(panel) for panel in panels}),
                             len(panels))


if __name__ == "__main__":
    unittest.main()
