"""Runs bench/rpc and other programs, for the tools that measure them."""

import os
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = pathlib.Path(sys.argv[0]).name


def say(*words):
    print(f"{TOOL}:", *words, file=sys.stderr, flush=True)


def leave(*words):
    say(*words)
    sys.exit(1)


def run(words, limit_s=300, **options):
    """Runs a command, and returns its standard output. Ends this program if
    the command fails or hangs."""
    try:
        result = subprocess.run(
            [str(word) for word in words], stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            timeout=limit_s, check=False, **options)
    except subprocess.TimeoutExpired:
        leave(f"{words[0]} has not ended within {limit_s} s")
    if result.returncode != 0:
        leave(f"{words[0]} failed:\n{result.stdout}{result.stderr}")
    return result.stdout


def build_rpc():
    """Builds bench/rpc from this tree, and returns its path."""
    say("building bench/rpc")
    words = ["bazel", "--max_idle_secs=600"]
    base = os.environ.get("PENSTOCK_BAZEL_OUTPUT_BASE")
    if base:
        words.append(f"--output_base={base}")
    links = "--experimental_convenience_symlinks=ignore"
    try:
        # Uses a long timeout, because a build without a cache takes some
        # minutes on two cores.
        run([*words, "build", links, "//bench/rpc"], 1800, cwd=ROOT)
        folder = run([*words, "info", links, "bazel-bin"], cwd=ROOT).strip()
    except FileNotFoundError:
        leave("there is no bazel: run tools/setup")
    return pathlib.Path(folder, "bench/rpc/rpc")
