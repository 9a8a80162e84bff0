#!/usr/bin/env -S python3 -B
"""Tests lint_files on small repositories."""

import os
import pathlib
import subprocess
import tempfile
import unittest

import lint_files


class LintFilesTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name, "tree")
        self.root.mkdir()
        self.git("init", "--quiet")

    def git(self, *arguments):
        # Ignores the settings of the user who runs the test.
        subprocess.run(
            ["git", "-c", "user.name=n", "-c", "user.email=e", *arguments],
            cwd=self.root, check=True, stdout=subprocess.DEVNULL,
            env={**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null",
                 "GIT_CONFIG_SYSTEM": "/dev/null"})

    def write(self, *names):
        for name in names:
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write("more\n")

    def commit(self, *names):
        self.write(*names)
        self.git("add", ".")
        self.git("commit", "--quiet", "--message=m")

    def chosen(self, count=9, folders=("a", "b"), root=None):
        root = root or self.root
        return [path.as_posix() for path in lint_files.choose(
            root, lint_files.changed_files(root, folders), count)]

    def test_uncommitted_changes_come_first_then_the_latest_commits(self):
        self.commit("a/1.cc", "a/2.cc", "a/3.cc")
        self.commit("b/4.cc")
        self.commit("a/2.cc")
        self.write("a/3.cc", "b/new.cc")
        self.assertEqual(self.chosen(),
                         ["a/3.cc", "b/new.cc", "a/2.cc", "b/4.cc", "a/1.cc"])
        self.assertEqual(self.chosen(2), ["a/3.cc", "b/new.cc"])

    def test_what_is_staged_is_uncommitted(self):
        self.commit("a/1.cc", "a/2.cc")
        self.write("a/2.cc")
        self.git("add", ".")
        self.assertEqual(self.chosen(1), ["a/2.cc"])

    def test_a_header_stands_for_its_source(self):
        self.commit("a/1.cc", "a/only.h", "a/1.h")
        self.write("a/1.h", "a/only.h")
        self.assertEqual(self.chosen(), ["a/1.cc"])

    def test_other_folders_other_files_and_removed_ones_do_not_count(self):
        self.commit("a/1.cc", "c/2.cc", "a/3.py", "a/gone.cc")
        (self.root / "a/gone.cc").unlink()
        self.assertEqual(self.chosen(), ["a/1.cc"])

    def test_a_shallow_clone_without_upstream_will_do(self):
        self.commit("a/1.cc")
        self.commit("a/2.cc")
        clone = self.root.parent / "clone"
        self.git("clone", "--quiet", "--depth=1", self.root.as_uri(), clone)
        self.git("-C", clone, "remote", "remove", "origin")
        self.assertEqual(self.chosen(root=clone), ["a/1.cc", "a/2.cc"])

    def test_without_a_repository_or_a_commit_it_says_so(self):
        for folder in self.root, self.root.parent:
            self.assertRaises(lint_files.GitError, self.chosen, root=folder)

    def test_without_git_it_says_so(self):
        path = os.environ["PATH"]
        self.addCleanup(os.environ.__setitem__, "PATH", path)
        os.environ["PATH"] = "/nowhere"
        self.assertRaisesRegex(lint_files.GitError, "git: No such file",
                               self.chosen)

    def test_a_file_belongs_to_the_nearest_package(self):
        self.write("a/BUILD", "a/b/c/1.cc")
        for source, label in (("a/b/c/1.cc", "//a:b/c/1.cc"), ("x.cc", None)):
            self.assertEqual(
                lint_files.label_of(self.root, pathlib.Path(source)), label)


if __name__ == "__main__":
    unittest.main()
