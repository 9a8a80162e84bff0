#!/usr/bin/env python3
"""Prints where the time of a run of tools/test went; for its --profile.

  durations.py [--times=FILE] [PROFILE.gz...]

PROFILE.gz is a profile of `bazel --profile`. If a profile is truncated, its
readable part counts. FILE has a line for each step that the scripts measured
themselves: kind, name, seconds, with tabs between.

Bazel runs several actions at a time. Actions are therefore in lane seconds: the
sum over the actions, each from its start to its end. The steps are in wall
seconds.
"""

import argparse
import bisect
import collections
import json
import re
import sys
import zlib

TOP = 20
# The unit of each kind, in the order of the output.
KINDS = {
    "set-up": "wall",
    "lint": "lane",
    "other checks": "wall",
    "compile, production": "lane",
    "compile, tests": "lane",
    "precompiled headers": "lane",
    "link": "lane",
    "other actions": "lane",
    "running tests": "lane",
    "VM": "wall",
    "demo": "wall",
}
# The kind of steps whose details are in the tables above. Only their total time
# is printed.
STEP = "step"
KIND_OF_VERB = {
    "Linting": "lint",
    "Precompiling": "precompiled headers",
    "Linking": "link",
    "Testing": "running tests",
}
TEST_SOURCE = re.compile(r"(^|/)tests?/|_test\.\w+$")
PROGRAMS_RUN = "local action execution"

# A line of the profile. `cached` means that Bazel had the result already, and
# only fetched it.
Entry = collections.namedtuple("Entry", "kind name seconds cached")


def decompress(data):
    """Returns the text, up to the point where the file is cut or damaged."""
    unpacker = zlib.decompressobj(wbits=47)  # gzip or zlib
    text = b""
    try:
        for start in range(0, len(data), 65536):
            text += unpacker.decompress(data[start:start + 65536])
    except zlib.error:
        pass
    return text.decode("utf-8", "replace")


def parse_events(text):
    """Returns the events. Bazel writes one event per line, so even a truncated
    file has whole lines."""
    events = []
    for line in text.splitlines():
        try:
            event = json.loads(line.strip().rstrip(","))
        except ValueError:
            continue
        if isinstance(event, dict) and "dur" in event:
            events.append(event)
    return events


def kind_of(name, mnemonic=""):
    """Returns the kind of an action by Bazel's message about its progress."""
    verb, _, rest = name.partition(" ")
    if mnemonic == "PrecompiledHeader":
        return "precompiled headers"
    if verb == "Compiling":
        is_test = TEST_SOURCE.search(rest)
        return "compile, tests" if is_test else "compile, production"
    return KIND_OF_VERB.get(verb, "other actions")


def entries_of(events):
    """Returns an entry for each action of a profile."""
    runs = collections.defaultdict(list)
    for event in events:
        if event.get("cat") == PROGRAMS_RUN:
            runs[event.get("tid")].append(event["ts"])
    for times in runs.values():
        times.sort()
    entries = []
    for event in events:
        if event.get("cat") != "action processing":
            continue
        begin, end = event["ts"], event["ts"] + event["dur"]
        times = runs[event.get("tid")]
        ran = bisect.bisect_left(times, begin) < bisect.bisect_left(times, end)
        mnemonic = (event.get("args") or {}).get("mnemonic", "")
        entries.append(Entry(kind_of(event["name"], mnemonic), event["name"],
                             event["dur"] / 1e6, not ran))
    return entries


def read_profile(path):
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        print(f"durations: {path}: {error.strerror}; left out",
              file=sys.stderr)
        return []
    return entries_of(parse_events(decompress(data)))


def parse_times(lines):
    """Returns the entries that the scripts measured. Skips malformed lines."""
    entries = []
    for line in lines:
        parts = line.rstrip("\n").split("\t")
        try:
            kind, name, seconds = parts
            entries.append(Entry(kind, name, float(seconds), False))
        except ValueError:
            continue
    return entries


def table(entries):
    """Returns the lines of the overview."""
    lines = [f"{'':22}{'seconds':>10}       {'run':>6} {'cached':>6}"]
    for kind, measure in KINDS.items():
        of_kind = [entry for entry in entries if entry.kind == kind]
        cached = sum(entry.cached for entry in of_kind)
        seconds = sum(entry.seconds for entry in of_kind)
        lines.append(f"{kind:22}{seconds:10.1f} {measure}  "
                     f"{len(of_kind) - cached:6} {cached:6}")
    return lines


def most_expensive(entries):
    """Returns the lines of the lists, one list for each kind that has any."""
    lines = []
    for kind in KINDS:
        of_kind = sorted((entry for entry in entries if entry.kind == kind),
                         key=lambda entry: -entry.seconds)
        if not of_kind:
            continue
        lines += ["", f"{kind}:"]
        lines += [f"{entry.seconds:10.1f}  {entry.name}"
                  for entry in of_kind[:TOP]]
    return lines


def report(entries):
    steps = [f"{entry.seconds:10.1f}  {entry.name}" for entry in entries
             if entry.kind == STEP]
    return (["wall seconds of each step:"] + steps + [""] + table(entries) +
            ["", f"The {TOP} most expensive of each kind, in seconds:"] +
            most_expensive(entries))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", help="what the scripts measured")
    parser.add_argument("profiles", nargs="*", metavar="PROFILE.gz")
    arguments = parser.parse_args()
    entries = []
    if arguments.times:
        try:
            with open(arguments.times, encoding="utf-8") as lines:
                entries += parse_times(lines)
        except OSError as error:
            print(f"durations: {arguments.times}: {error.strerror}",
                  file=sys.stderr)
    for path in arguments.profiles:
        entries += read_profile(path)
    print(*report(entries), sep="\n")


if __name__ == "__main__":
    main()
