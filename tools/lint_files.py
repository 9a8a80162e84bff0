#!/usr/bin/env python3
"""Prints which .cc files changed last, as labels of Bazel; for tools/lint.

  lint_files.py COUNT FOLDER...

Prints at most COUNT files of these folders of the tree: first the files with
uncommitted changes, then the most recently committed. A changed header stands
for the .cc file of the same name in its folder. In a shallow clone the oldest
commit counts as a change of every file. Exits 1, with the reason, if git fails.
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


class GitError(Exception):
    pass


def git(root, *arguments):
    """Yields the lines that git prints. Ends git early if the caller stops."""
    try:
        process = subprocess.Popen(["git", "-C", root, *arguments], text=True,
                                   stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE)
    except OSError as error:
        raise GitError(f"git: {error.strerror}") from error
    with process:
        try:
            for line in process.stdout:
                yield line.rstrip("\n")
            said = process.stderr.read().strip()
        finally:
            process.kill()
    if process.returncode > 0:
        raise GitError(said.splitlines()[-1] if said else "git failed")


def changed_files(root, folders):
    """Yields paths, the most recently changed first, some more than once."""
    tail = ["--", *folders]
    yield from git(root, "diff", "--relative", "--name-only", "HEAD", *tail)
    yield from git(root, "ls-files", "--others", "--exclude-standard", *tail)
    yield from git(root, "log", "--relative", "--name-only", "--format=", *tail)


def source_of(path):
    """Returns the .cc file that a changed file stands for."""
    return path.with_suffix(".cc") if path.suffix in (".cc", ".h") else None


def choose(root, changed, count):
    """Returns the first `count` sources of the changed files that exist."""
    chosen = []
    for name in changed:
        if len(chosen) >= count:
            break
        source = source_of(pathlib.Path(name))
        if source and source not in chosen and (root / source).is_file():
            chosen.append(source)
    return chosen


def label_of(root, source):
    """Returns the label of a file, or None if no package has it."""
    for package in source.parents:
        if (root / package / "BUILD").is_file():
            prefix = "" if package == pathlib.Path() else package.as_posix()
            return f"//{prefix}:{source.relative_to(package).as_posix()}"
    return None


def main():
    count, folders = int(sys.argv[1]), sys.argv[2:]
    folders = [name for name in folders if (ROOT / name).is_dir()]
    try:
        chosen = choose(ROOT, changed_files(ROOT, folders), count)
    except GitError as error:
        print(error, file=sys.stderr)
        return 1
    labels = [label_of(ROOT, source) for source in chosen]
    labels = [label for label in labels if label]
    print(*labels, sep="\n", end="\n" if labels else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
