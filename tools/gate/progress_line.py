"""Estimates the progress of Bazel or of the VM, and the remaining time.

Pure: reads no clock and no file. watch.py and vm_tests.py are the users.
"""

import json

BAR_WIDTH = 20
# When this share of the work is done, only the speed of this run counts.
TRUSTED_SHARE = 0.5
# Without an earlier run, the first targets give no useful estimate.
FIRST_SHARE = 0.05
FAILURES = {"FAILED", "TIMEOUT", "FAILED_TO_BUILD", "REMOTE_FAILURE",
            "TOOL_HALTED_BEFORE_TESTING"}


def duration(seconds):
    """Returns a time as a person says it: 40 s, 3 min, 1 h 20 min."""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes = int(seconds + 30) // 60
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def remaining(share, elapsed_s, expected_s):
    """Returns the remaining seconds of a step, or None if unknown.

    share: the share of the work that is done, from 0 to 1.
    expected_s: how long the whole step takes by experience; None: unknown.
    """
    if share >= 1:
        return 0.0
    if share > 0:
        by_speed = elapsed_s / share
    if expected_s is None:
        return by_speed - elapsed_s if share >= FIRST_SHARE else None
    weight = min(1.0, share / TRUSTED_SHARE)
    total = (1 - weight) * expected_s
    if share > 0:
        total += weight * by_speed
    # Ignores the earlier run if the step is late, and little is done.
    return total - elapsed_s if total > elapsed_s else None


class BazelProgress:
    """The progress of one `bazel test` or `bazel build`, by its events."""

    def __init__(self):
        self._part = b""
        self._targets, self._built = set(), set()
        self._tests, self._tested, self._failed = set(), set(), set()

    def feed(self, data):
        """Takes the text that was appended to --build_event_json_file."""
        *lines, self._part = (self._part + data).split(b"\n")
        for line in lines:
            try:
                event = json.loads(line)
            except ValueError:
                continue
            self._take(event)

    def _take(self, event):
        for kind, key in event.get("id", {}).items():
            if kind not in ("targetConfigured", "targetCompleted",
                            "testSummary"):
                continue
            label = key.get("label")
            target = label, key.get("aspect")
            if kind == "targetConfigured":
                self._targets.add(target)
                if "testSize" in event.get("configured", {}):
                    self._tests.add(label)
            elif kind == "targetCompleted":
                self._targets.add(target)
                self._built.add(target)
                if not event.get("completed", {}).get("success"):
                    # Counts a test that did not build as tested, because it has
                    # no summary.
                    self._tested |= self._tests & {label}
                    # Bazel skips targets that need what this machine lacks.
                    reason = event.get("aborted", {}).get("reason")
                    if reason != "SKIPPED":
                        self._failed.add(label)
            else:
                self._tested.add(label)
                status = event.get("testSummary", {}).get("overallStatus")
                if status in FAILURES:
                    self._failed.add(label)

    def has_targets(self):
        return bool(self._targets)

    def share(self, testing):
        """Returns the share of the work that is done.

        Each target counts once when built, and each test once more when run.
        """
        done, total = len(self._built), len(self._targets)
        if testing:
            done += len(self._tested)
            total += len(self._tests)
        return done / total if total else 0.0

    def text(self, testing):
        if not self._targets:
            return "loading"
        parts = [f"{len(self._built)} of {len(self._targets)} targets built"]
        if testing:
            parts.insert(0, f"{len(self._tested)} of {len(self._tests)} test "
                         "targets done")
        parts.insert(1, f"{len(self._failed)} failed")
        return ", ".join(parts)


class Line:
    """The line that a person reads about one step, and when it is due.

    clock: returns seconds, such as time.monotonic.
    begun: when the whole run began, by that clock.
    expected_s: how long this step takes by experience, or None.
    after_s: how long the steps after it take, or None.
    """

    PERIOD_S = 30

    def __init__(self, name, clock, begun=None, expected_s=None, after_s=None):
        self._name, self._clock = name, clock
        self._start = clock()
        self._begun = self._start if begun is None else begun
        self._expected_s, self._after_s = expected_s, after_s
        self._next = self._start + self.PERIOD_S

    def due(self):
        """Returns true once in each period."""
        if self._clock() < self._next:
            return False
        self._next = self._clock() + self.PERIOD_S
        return True

    def text(self, done, share):
        line = self.final(done)
        left = remaining(share, self._clock() - self._start, self._expected_s)
        if left is None:
            return line
        if self._after_s is None:
            return f"{line}, this step about {duration(left)} more"
        return f"{line}, about {duration(left + self._after_s)} to go"

    def final(self, done):
        return (f"{self._name}: {done};"
                f" {duration(self._clock() - self._begun)} so far")

    def bar(self, done, share, columns):
        """Returns the line with a bar, for a terminal of so many columns."""
        filled = round(BAR_WIDTH * min(1.0, share))
        bar = "#" * filled + "." * (BAR_WIDTH - filled)
        return f"[{bar}] {self.text(done, share)}"[:max(1, columns - 1)]
