#!/usr/bin/env -S python3 -B
"""Tests the tables and plans of bench/links."""

import unittest

import links_plan
import links_table


def record(link, setting, *times, sizes=()):
    samples = {f"call {i}": time for i, time in enumerate(times)}
    return {"fabric": "tcp", "group": "chunk", "link": link,
            "setting": setting, "samples": samples, "sizes": list(sizes)}


class TableTest(unittest.TestCase):

    def test_a_cost_is_relative_to_the_best_fixed_setting(self):
        ratios = links_table.ratios([record("a", "adaptive", 1, 4),
                                     record("a", "1 KiB", 4, 4),
                                     record("a", "2 KiB", 8, 8)])
        self.assertAlmostEqual(ratios["adaptive"], 0.5)
        self.assertAlmostEqual(ratios["1 KiB"], 1)
        self.assertAlmostEqual(ratios["2 KiB"], 2)

    def test_a_setting_with_a_call_that_failed_has_failed(self):
        ratios = links_table.ratios([record("a", "adaptive", 1, 4),
                                     record("a", "1 KiB", 4),
                                     record("a", "2 KiB", 1, 1)])
        self.assertEqual(ratios["1 KiB"], links_table.FAILED)
        self.assertAlmostEqual(ratios["adaptive"], 2)

    def test_without_a_fixed_setting_there_is_nothing_to_compare_with(self):
        ratios = links_table.ratios([record("a", "adaptive", 1, 4),
                                     record("a", "1 KiB", 4)])
        self.assertEqual(ratios["adaptive"], links_table.FAILED)

    def test_the_worst_and_the_mean_over_all_links(self):
        table = {"a": {"x": 1.0, "y": 1.0}, "b": {"x": 4.0}}
        worst, mean = links_table.over_all(table, "x")
        self.assertAlmostEqual(worst, 4)
        self.assertAlmostEqual(mean, 2)
        self.assertEqual(links_table.over_all(table, "y"),
                         (links_table.FAILED, links_table.FAILED))

    def test_the_table_has_a_row_for_each_link_and_two_for_all(self):
        text = links_table.report(
            [record("a", "adaptive", 2, sizes=(16384, 16384)),
             record("a", "16 KiB", 1), record("b", "adaptive", 3,
                                              sizes=(16384, 1 << 20)),
             record("b", "16 KiB", 3)], times=True)
        self.assertIn("| a | 16 KiB | 2.00 | 1.00 |", text)
        self.assertIn("| b | 16 KiB to 1 MiB | 1.00 | 1.00 |", text)
        self.assertIn("| **worst** |  | 2.00 | 1.00 |", text)
        self.assertIn("| **mean** |  | 1.41 | 1.00 |", text)

    def test_times_and_goodput(self):
        text = links_table.time_table(
            [{"link": "a", "setting": "adaptive",
              "samples": {"beside 1 MiB": 2500, "beside 1 MiB, a MB": 1e5}}])
        self.assertIn("| Link | setting | beside 1 MiB | beside 1 MiB, MB/s |",
                      text)
        self.assertIn("| a | adaptive | 2.50 | 10.00 |", text)


class PlanTest(unittest.TestCase):

    def test_links_have_names_of_their_own(self):
        for link in links_plan.LINKS:
            self.assertEqual(
                links_plan.link_named(links_plan.name_of(link)), link)

    def test_the_first_setting_is_the_adaptive_one(self):
        settings = links_plan.settings_of(links_plan.CHUNKS)
        self.assertEqual(next(iter(settings.items())), ("adaptive", {}))
        self.assertEqual(settings["16 KiB"], {"PENSTOCK_CHUNK": "16384"})

    def test_only_scored_sizes_count(self):
        run = links_plan.Run("beside", (8192, 65536), (8192,), 1, 1)
        cells = [{"bytes": size, "p50_us": 5.0, "p99_us": 7.0, "mb_per_s": 2.0}
                 for size in run.sizes]
        self.assertEqual(links_plan.samples_of(run, cells),
                         {"beside 8 KiB, tiny": 7.0, "beside 8 KiB, a MB": 5e5})
        run = run._replace(benchmark="latency")
        self.assertEqual(links_plan.samples_of(run, cells),
                         {"latency 8 KiB": 5.0})


if __name__ == "__main__":
    unittest.main()
