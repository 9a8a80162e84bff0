"""Runs the tests of the file that imports it, as Bazel wants it.

    if __name__ == "__main__":
        run_pytest.main(__file__)
"""

import os
import pathlib
import sys

# Bazel starts a test where its files lie.
PACKAGES = str(pathlib.Path("python").absolute())
sys.path.insert(0, PACKAGES)
os.environ["PYTHONPATH"] = PACKAGES  # for processes that a test starts
os.environ.setdefault("PENSTOCK_LOG", "warning")


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
