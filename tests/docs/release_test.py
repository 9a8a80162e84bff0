#!/usr/bin/env python3
"""Checks the form of CHANGELOG.md, and that all places that name a version agree.

Under Bazel the tree is found through this file, which is a link into it: the
test reads the working tree, so its result is never taken from the cache (see
BUILD).
"""

import datetime
import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

KINDS = ["Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"]
RELEASE = re.compile(r"\[(\d+)\.(\d+)\.(\d+)\] - (\d{4}-\d\d-\d\d)")


def read(path):
    return (ROOT / path).read_text(encoding="utf-8")


def found(path, pattern):
    """Returns all matches of a pattern in a file."""
    return re.findall(pattern, read(path), re.MULTILINE)


def number(path, name):
    """Returns the value of an integer constant in a header."""
    (value,) = found(path, rf"\b{name} = (\d+);")
    return value


def sections(text, level):
    """Returns the pairs of heading and body at a level of headings."""
    parts = re.split(rf"^{'#' * level} (.*)\n", text, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def releases(text):
    """Returns the releases of a changelog, newest first, as (version, date)."""
    dated = [RELEASE.fullmatch(heading) for heading, _ in sections(text, 2)]
    return [(tuple(map(int, match.groups()[:3])), match[4])
            for match in dated if match]


def problems(text):
    """Returns the offences of a changelog against Keep a Changelog."""
    if not text.startswith("# Changelog\n"):
        yield "the title is not Changelog"
    listed = sections(text, 2)
    if not listed or listed[0][0] != "[Unreleased]":
        yield "the first section is not [Unreleased]"
    for heading, body in listed[1:]:
        match = RELEASE.fullmatch(heading)
        if not match:
            yield f"{heading}: not of the form [1.2.3] - 2026-12-31"
            continue
        try:
            datetime.date.fromisoformat(match[4])
        except ValueError:
            yield f"{heading}: no such day"
        if not sections(body, 3):
            yield f"{heading}: no changes"
    for heading, body in listed:
        for kind, changes in sections(body, 3):
            if kind not in KINDS:
                yield f"{heading}: {kind} is none of {', '.join(KINDS)}"
            if not re.match(r"\n- ", changes):
                yield f"{heading}: {kind} begins with no list"
    dated = releases(text)
    for newer, older in zip(dated, dated[1:]):
        if newer[0] <= older[0] or newer[1] < older[1]:
            yield f"{older[0]} is not older than {newer[0]}"


class ChangelogTest(unittest.TestCase):

    def test_it_has_the_form_of_keep_a_changelog(self):
        self.assertEqual(list(problems(read("CHANGELOG.md"))), [])

    def test_it_has_no_release_after_the_version(self):
        (version,) = found("penstock/version.h", r'PENSTOCK_VERSION "(.+)"')
        self.assertLessEqual(
            [release for release, _ in releases(read("CHANGELOG.md"))][:1],
            [tuple(map(int, version.split(".")))])


class VersionTest(unittest.TestCase):

    def test_each_place_that_names_the_release_names_the_same(self):
        places = {
            "penstock/version.h": r'PENSTOCK_VERSION "([^"]+)"',
            "debian/changelog": r"\Apenstock \(([^-]+)-",
        }
        versions = {place: found(place, pattern)
                    for place, pattern in places.items()}
        self.assertEqual(len(set(map(tuple, versions.values()))), 1, versions)

    def test_wheels_take_their_version_from_there(self):
        for place in ("python", "frameworks/tensorflow/python"):
            self.assertEqual(found(f"{place}/METADATA", r"^Version: (.+)$"),
                             ["@VERSION@"], place)

    def test_the_table_of_formats_has_the_numbers_of_the_code(self):
        rows = dict(re.findall(r"^\| ([\w ]+?)(?: \(\[.*?)? \| (.+?) \|",
                               read("docs/compatibility.md"), re.MULTILINE))
        (soname,) = found("penstock/BUILD", r"-soname,([\w.]+)")
        frame = "transport/wire/frame.h"
        wanted = {
            "protocol of a connection": " to ".join(
                [number(frame, "kOldestVersion"), number(frame, "kVersion")]),
            "shared memory": number("transport/fabric/shm/control.h",
                                    "kLayoutVersion"),
            "RDMA": number("transport/fabric/verbs/formats/private_data.h",
                           "kVersion"),
            "checkpoint": number("ps/checkpoint/format.h", "kFormatVersion"),
            "recording": number("transport/record/part.cc", "kVersion"),
            "shared library": f"`{soname}`",
        }
        self.assertEqual({name: rows.get(name) for name in wanted}, wanted)


class CheckerTest(unittest.TestCase):
    """Tests the checks themselves."""

    GOOD = ("# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-31\n\n"
            "### Fixed\n\n- A.\n\n## [0.1.0] - 2026-11-30\n\n### Added\n\n- B.\n")

    def test_a_good_one_has_no_problem(self):
        self.assertEqual(list(problems(self.GOOD)), [])
        self.assertEqual(releases(self.GOOD), [((0, 2, 0), "2026-12-31"),
                                               ((0, 1, 0), "2026-11-30")])

    def test_each_offence_is_found(self):
        for old, new, problem in [
                ("# Changelog", "# Changes", "title"),
                ("[Unreleased]", "Unreleased", "first section"),
                ("[0.2.0] - 2026-12-31", "0.2.0", "not of the form"),
                ("2026-12-31", "2026-12-32", "no such day"),
                ("### Fixed\n\n- A.\n", "", "no changes"),
                ("### Fixed", "### Mended", "is none of"),
                ("- A.", "A.", "no list"),
                ("0.2.0", "0.0.9", "not older"),
                ("2026-12-31", "2026-01-31", "not older")]:
            with self.subTest(problem=problem):
                found_now = list(problems(self.GOOD.replace(old, new)))
                self.assertTrue(found_now and problem in found_now[0],
                                found_now)


if __name__ == "__main__":
    unittest.main()
