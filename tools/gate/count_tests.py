#!/usr/bin/env python3
"""Counts the test cases of one `bazel test` run.

Reads the run's build events. Old results in bazel-testlogs therefore do not
count, and results from Bazel's cache do. Prints one line per test case: passed,
failed or skipped, its name, a reason, with tabs between. A target that passed
when Bazel repeated it has one more line: flaky, its name, the failure. A target
that did not build, timed out or crashed fails at least once. A target without a
report of its own counts as one case.
"""

import argparse
import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree

# Bazel's exit codes
BUILD_FAILED = 1
NO_TESTS_FOUND = 4


def one_line(text):
    return " ".join((text or "").split())[:200]


def read_report(uri):
    path = urllib.parse.unquote(urllib.parse.urlparse(uri).path)
    return read_cases(ElementTree.parse(path).getroot())


def read_cases(report):
    """Yields (outcome, name, reason) for each case of a JUnit report."""
    for case in report.iter("testcase"):
        name = ".".join(filter(None, [case.get("classname"),
                                      case.get("name")]))
        problem = case.find("failure")
        if problem is None:
            problem = case.find("error")
        skip = case.find("skipped")
        if problem is not None:
            yield "failed", name, one_line(problem.get("message"))
        elif skip is not None:
            yield "skipped", name, one_line(skip.get("message"))
        elif case.get("status") == "notrun":
            yield "skipped", name, "disabled in the source"
        else:
            yield "passed", name, ""


def read_result(label, result):
    """Returns the cases of one run of one test target."""
    status = result["status"]
    cases = []
    reports = [output["uri"] for output in result.get("testActionOutput", [])
               if output["name"] == "test.xml"]
    for uri in reports:
        try:
            cases += read_report(uri)
        except (OSError, ElementTree.ParseError) as error:
            print(f"count_tests: {label}: {error}", file=sys.stderr)
            reports = []
    if status in ("PASSED", "FLAKY"):
        return cases if reports else [("passed", "", "")]
    if status == "TIMEOUT":
        # Counts a time-out: Bazel wrote the report instead of the test, with an
        # odd exit code.
        cases = [("failed", "", "timed out")]
    if not any(outcome == "failed" for outcome, _, _ in cases):
        # Counts a failure of the process after it had written the report.
        cases.append(("failed", "", status.lower().replace("_", " ")))
    return cases


def after_retry(earlier, cases):
    """Returns the cases of an attempt, with the failures of an earlier one."""
    failed = [f"{name} {reason}".strip() for outcome, name, reason in earlier
              if outcome == "failed"]
    if not failed or any(outcome == "failed" for outcome, _, _ in cases):
        return cases
    return cases + [("flaky", "", one_line("; ".join(failed)))]


def collect(events):
    """Returns the outcomes of all targets of the run, and the broken targets.

    The first is {target or shard: (label, cases)}. The second is {label:
    reason} of the targets that do not build and so have no test result.
    """
    results, broken = {}, {}
    for event in events:
        (kind, key), = [(k, v) for k, v in event["id"].items()][:1]
        if kind == "testResult":
            # Replaces the result of an earlier attempt.
            shard = (key["label"], key.get("run"), key.get("shard"))
            cases = read_result(key["label"], event["testResult"])
            earlier = results.get(shard, (None, []))[1]
            results[shard] = (key["label"], after_retry(earlier, cases))
        elif kind not in ("targetCompleted", "pattern"):
            continue  # a cause, such as a missing file, is no target
        elif "aborted" in event:
            label = key.get("label") or " ".join(key.get("pattern", []))
            aborted = event["aborted"]
            if aborted.get("reason") == "SKIPPED":
                results[label] = (label, [("skipped", "", "incompatible")])
            elif aborted.get("reason") != "NO_BUILD":
                broken[label] = one_line(aborted.get("description"))
        elif "completed" in event and not event["completed"].get("success"):
            broken.setdefault(key["label"], "does not build")
    tested = {label for label, _ in results.values()}
    return results, {label: reason for label, reason in broken.items()
                     if label not in tested}


def outcomes(results, broken, exit_code, may_be_empty=False):
    """Lists (outcome, name, reason), with failures shown by the exit code."""
    cases = [(outcome, f"{label} {name}", reason)
             for label, found in results.values()
             for outcome, name, reason in found]
    cases += [("failed", label, reason) for label, reason in broken.items()]
    if exit_code == BUILD_FAILED and not broken:
        cases.append(("failed", "bazel test",
                      "a BUILD file cannot be loaded, see above"))
    elif may_be_empty and exit_code == NO_TESTS_FOUND and not cases:
        pass
    elif not cases or exit_code == NO_TESTS_FOUND:
        cases.append(("failed", "bazel test",
                      'no test ran (those tagged "full" need --full, and '
                      '--quick runs those of size small)'))
    elif exit_code and not any(case[0] == "failed" for case in cases):
        cases.append(("failed", "bazel test", f"exit code {exit_code}"))
    return cases


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="plain")
    parser.add_argument("--exit-code", type=int, required=True)
    parser.add_argument("--may-be-empty", action="store_true",
                        help="no test was to run here; others run elsewhere")
    parser.add_argument("events", help="from --build_event_json_file")
    arguments = parser.parse_args()

    try:
        with open(arguments.events, encoding="utf-8") as lines:
            results, broken = collect(json.loads(line) for line in lines)
    except OSError:  # Bazel refused its command line
        results, broken = {}, {}
    for line in outcomes(results, broken, arguments.exit_code,
                         arguments.may_be_empty):
        prefix = arguments.config + ": "
        if arguments.config == "plain":
            prefix = ""
        print(line[0], prefix + line[1].strip(), line[2], sep="\t")


if __name__ == "__main__":
    main()
