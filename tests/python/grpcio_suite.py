#!/usr/bin/python3 -B
"""Runs grpcio's own tests over grpcio and over penstock.grpc, and compares the
outcomes. tools/grpcio_tests starts this program.

    grpcio_suite.py TESTS PACKAGES [FILE...]

TESTS is the folder that has grpcio's folders `tests` and `tests_aio`, and the
generated modules of their protos. PACKAGES has the package penstock. FILEs, such
as tests/unit/_rpc_part_1_test.py, replace all files. Each file runs twice, in processes of its own. Prints a line for each
file, and for each test that does not pass over both. Exits with 1 if a test
passes over grpcio only, unless the difference is documented.
"""

import collections
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

# Folders of tests that make no calls by channels and servers.
_OTHERS = {"_cython", "_sanity", "admin", "benchmark", "beta", "csds", "fork",
           "foundation", "http2", "protoc_plugin", "qps", "stress", "testing"}
# The differences that docs/python_grpc.md states, by classes of tests.
_DOCUMENTED = {"ChannelzServicerTest": "channelz counts grpcio's calls only"}
# How long a file may run, in seconds.
_LIMIT = 300

Result = collections.namedtuple("Result", ("outcome", "fast_calls"))
_MISSING = Result("missing", 0)


def files(tests):
    """Returns the files of tests."""
    return sorted(path.relative_to(tests)
                  for root in ("tests", "tests_aio")
                  for path in pathlib.Path(tests, root).rglob("*_test.py")
                  if not _OTHERS & set(path.relative_to(tests).parts))


def outcome_of(case):
    for tag in ("failure", "error", "skipped"):
        if case.find(tag) is not None:
            return tag
    return "passed"


def results_of(report):
    """Returns the Result of each test in a report of pytest."""
    results = {}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = case.get("classname").rpartition(".")[2] + "." + case.get("name")
        calls = sum(int(entry.get("value")) for entry in case.iter("property")
                    if entry.get("name") == "fast_calls")
        results[name] = Result(outcome_of(case), calls)
    return results


def run(tests, packages, file, way):
    """Runs a file of tests over "grpcio" or "fast". Returns the Result of each
    test."""
    with tempfile.TemporaryDirectory() as work:
        report = os.path.join(work, "report.xml")
        command = [sys.executable, "-B", "-m", "pytest", "-q", "-p",
                   "no:cacheprovider", f"--junitxml={report}",
                   "--rootdir", str(tests), str(file)]
        path = [str(tests)]
        if way == "fast":
            # Puts the module where each new Python process imports it at its
            # start.
            pathlib.Path(work, "sitecustomize.py").write_text(
                "import grpcio_way\n")
            path = [work, *path, str(packages), str(pathlib.Path(
                __file__).resolve().parent)]
            command += ["-p", "grpcio_way"]
        log = tests / "logs" / f"{'.'.join(file.with_suffix('').parts)}.{way}"
        log.parent.mkdir(exist_ok=True)
        try:
            with log.open("w") as output:
                subprocess.run(
                    command, cwd=tests, timeout=_LIMIT, stdout=output,
                    stderr=subprocess.STDOUT, check=False,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path)})
            return results_of(report)
        except (OSError, subprocess.TimeoutExpired) as error:
            return {"(all)": Result(type(error).__name__, 0)}


def compare(stock, fast):
    """Returns the names of tests that pass over both, one line for each other
    test, and the number of undocumented differences."""
    good, lines, worse = [], [], 0
    for name in sorted({*stock, *fast}):
        left, right = (results.get(name, _MISSING).outcome
                       for results in (stock, fast))
        if left == right == "passed":
            good.append(name)
        elif left == right:
            lines.append(f"{name}: {left} over both")
        else:
            reason = _DOCUMENTED.get(name.partition(".")[0])
            lines.append(f"{name}: {left} over grpcio, {right} over ours"
                         + (f": {reason}" if reason else ""))
            worse += left == "passed" and reason is None
    return good, lines, worse


def main(tests, packages, *chosen):
    # A shell's job in the background ignores SIGINT, which tests send.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    tests, packages = (pathlib.Path(folder).resolve()
                       for folder in (tests, packages))
    passed = taken = worse = 0
    for file in map(pathlib.Path, chosen or files(tests)):
        stock, fast = (run(tests, packages, file, way)
                       for way in ("grpcio", "fast"))
        good, lines, count = compare(stock, fast)
        fast_ones = sum(fast[name].fast_calls > 0 for name in good)
        passed, taken, worse = passed + len(good), taken + fast_ones, worse + count
        print(f"{file}: {len(good)} pass over both, {fast_ones} of them with "
              "calls over the data plane", *lines, sep="\n  ", flush=True)
    print(f"{passed} pass over both, {taken} of them with calls over the fast "
          f"way; {worse} pass over grpcio only")
    return 1 if worse else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__.strip())
    sys.exit(main(*sys.argv[1:]))
