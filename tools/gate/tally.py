#!/usr/bin/env python3
"""Prints what failed, what was skipped and why, and the sum; for tools/test.

  tally.py [--retry=N] TALLY VM_TALLY

Both files have a line for each test case, in the form of count_tests.py:
outcome, name, reason, with tabs between. VM_TALLY has the tests that used RDMA
devices; TALLY has all tests. At most N tests may pass only when repeated;
without --retry, any number. Exits 0 if a test passed and none failed.
"""

import argparse
import collections
import sys

Case = collections.namedtuple("Case", "outcome name reason")


def parse(lines):
    cases = []
    for line in lines:
        parts = line.rstrip("\n").split("\t")
        cases.append(Case(*(parts + ["", ""])[:3]))
    return cases


def those(cases, *outcomes):
    return [case for case in cases if case.outcome in outcomes]


def named(title, cases):
    return [": ".join(filter(None, [title, case.name, case.reason]))
            for case in cases]


def sum_line(cases):
    passed, failed, skipped = (
        len(those(cases, outcome))
        for outcome in ("passed", "failed", "skipped"))
    text = f"{passed} passed, {failed} failed"
    return text + (f", {skipped} skipped" if skipped else "")


def beyond_limit(cases, limit):
    """Returns a failure if more than `limit` tests passed only when repeated.
    """
    flaky = len(those(cases, "flaky"))
    if limit is None or flaky <= limit:
        return []
    return [Case("failed", f"tools/test --retry={limit}",
                 f"{flaky} tests passed only when repeated, "
                 f"at most {limit} may")]


def closing(cases, vm_cases):
    """Returns the lines, the sum last."""
    flaky = those(cases, "flaky")
    reasons = collections.Counter(
        case.reason for case in those(cases, "skipped"))
    lines = [f"skipped: {count} x {reason}"
             for reason, count in sorted(reasons.items())]
    lines += named("PASSED WHEN REPEATED", flaky)
    if flaky:
        lines.append(f"{len(flaky)} passed when repeated")
    lines += named("FAILED", those(cases, "failed"))
    lines.append(f"verbs in the VM: {len(those(vm_cases, 'passed', 'failed'))}"
                 " tests")
    return lines + [sum_line(cases)]


def succeeded(cases):
    return bool(those(cases, "passed")) and not those(cases, "failed")


def read(path):
    with open(path, encoding="utf-8", errors="replace") as lines:
        return parse(lines)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--retry", type=int, metavar="N")
    parser.add_argument("tally")
    parser.add_argument("vm_tally")
    arguments = parser.parse_args()
    cases = read(arguments.tally)
    cases += beyond_limit(cases, arguments.retry)
    print("", *closing(cases, read(arguments.vm_tally)), sep="\n")
    return 0 if succeeded(cases) else 1


if __name__ == "__main__":
    sys.exit(main())
