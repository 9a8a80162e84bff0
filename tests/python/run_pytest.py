"""Runs the tests of the importing file, in the form that Bazel expects.

    if __name__ == "__main__":
        run_pytest.main(__file__)
"""

import os
import pathlib
import re
import subprocess
import sys

# The folder of the package. Bazel starts a test in the folder of its files.
PACKAGES = str(pathlib.Path("python").absolute())
sys.path.insert(0, PACKAGES)
os.environ["PYTHONPATH"] = PACKAGES  # for processes that a test starts
os.environ.setdefault("PENSTOCK_LOG", "warning")


def runtime_of_asan():
    """Returns the sanitizer libraries that must be loaded before a module
    built with --config=asan. Returns "" for another module. asan looks for the
    C++ library as it starts."""
    module = next(pathlib.Path(PACKAGES, "penstock").glob("_*.so"))
    linked = subprocess.run(["ldd", module], text=True, capture_output=True,
                            check=True).stdout
    found = re.findall(r"lib(?:asan|stdc\+\+)\S* => (\S+)", linked)
    found.sort(key=lambda path: "libasan" not in path)
    return " ".join(found) if "libasan" in linked else ""


def start_again_with_asan():
    """Starts this program again with asan, which must be loaded before Python.
    Python does not link asan."""
    runtime = runtime_of_asan()
    if runtime and "LD_PRELOAD" not in os.environ:
        os.environ["LD_PRELOAD"] = runtime
        # Disables the search for leaks, because Python itself does not free all
        # of its memory at exit.
        os.environ["ASAN_OPTIONS"] = ":".join(
            [os.environ.get("ASAN_OPTIONS", ""), "detect_leaks=0"])
        os.execv(sys.executable, [sys.executable, "-B", *sys.argv])


start_again_with_asan()


def main(file):
    try:
        import pytest
    except ImportError:
        sys.exit("there is no pytest here: run tools/setup, which installs "
                 "python3-pytest")
    report = os.environ.get("XML_OUTPUT_FILE")
    sys.exit(pytest.main(
        [str(pathlib.Path(file).resolve()), "-q", "-rs", "-p", "no:cacheprovider"]
        + ([f"--junitxml={report}"] if report else [])))
