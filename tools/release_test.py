#!/usr/bin/env -S python3 -B
"""Tests tools/release, in a repository of its own with builders that make
empty files."""

import datetime
import pathlib
import shutil
import subprocess
import tempfile
import unittest

TOOL = pathlib.Path(__file__).parent / "release"

HEADER = '#define PENSTOCK_VERSION "0.1.0"\n'
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n### Added\n\n- A thing.\n"
DEBIAN = ("penstock (0.1.0-1) unstable; urgency=medium\n\n  * First.\n\n"
          " -- Us <us@example.com>  Mon, 23 Nov 2026 09:00:00 +0000\n")
TODAY = datetime.datetime.now(datetime.timezone.utc).date().isoformat()


class ReleaseTest(unittest.TestCase):

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for path, text in [("penstock/version.h", HEADER),
                           ("CHANGELOG.md", CHANGELOG),
                           ("debian/changelog", DEBIAN),
                           (".gitignore", "/dist/\n")]:
            self.put(path, text)
        for name in ("package", "wheel", "tensorflow_wheel", "torch_wheel"):
            self.put(f"tools/{name}", f'#!/bin/sh\necho x >"$1/{name}.file"\n')
        self.put("tools/setup", "#!/bin/sh\n")
        shutil.copy(TOOL, self.root / "tools/release")
        for tool in (self.root / "tools").iterdir():
            tool.chmod(0o755)
        self.git("init", "-q")
        self.commit()

    def put(self, path, text):
        (self.root / path).parent.mkdir(exist_ok=True)
        (self.root / path).write_text(text)

    def text(self, path):
        return (self.root / path).read_text()

    def git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=Us", "-c",
                        "user.email=us@example.com", *arguments],
                       cwd=self.root, check=True)

    def commit(self):
        self.git("add", "-A")
        self.git("commit", "-qm", "Release: some")

    def run_tool(self, *arguments):
        return subprocess.run([self.root / "tools/release", *arguments],
                              capture_output=True, text=True, check=False)

    def refuses(self, reason, *arguments):
        done = self.run_tool(*arguments)
        self.assertEqual(done.returncode, 1, done)
        self.assertIn(reason, done.stderr)

    def test_by_default_it_shows_the_changes_and_makes_none(self):
        done = self.run_tool("0.2.0")
        self.assertEqual(done.returncode, 0, done)
        self.assertIn('+#define PENSTOCK_VERSION "0.2.0"', done.stdout)
        self.assertIn("tools/package dist/0.2.0", done.stdout)
        self.assertEqual(self.text("penstock/version.h"), HEADER)
        self.assertFalse((self.root / "dist").exists())

    def test_all_places_get_a_new_version(self):
        self.assertEqual(self.run_tool("0.2.0", "--write").returncode, 0)
        self.assertEqual(self.text("penstock/version.h"),
                         '#define PENSTOCK_VERSION "0.2.0"\n')
        self.assertEqual(
            self.text("CHANGELOG.md"),
            f"# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - {TODAY}\n\n"
            "### Added\n\n- A thing.\n")
        debian = self.text("debian/changelog")
        self.assertTrue(debian.startswith("penstock (0.2.0-1) unstable; "))
        self.assertTrue(debian.endswith("\n\n" + DEBIAN))

    def test_the_first_release_dates_the_entry_that_is_there(self):
        self.assertEqual(self.run_tool("0.1.0", "--write").returncode, 0)
        debian = self.text("debian/changelog")
        self.assertEqual(debian.count("penstock ("), 1)
        self.assertNotIn("Mon, 23 Nov", debian)

    def test_only_a_newer_version_is_a_release(self):
        self.refuses("is not of the form", "0.2")
        self.refuses("is older than 0.1.0", "0.0.9")
        self.run_tool("0.1.0", "--write")
        self.put("CHANGELOG.md", self.text("CHANGELOG.md").replace(
            "[Unreleased]\n", "[Unreleased]\n\n### Fixed\n\n- A fault.\n"))
        self.refuses("is not newer than the release 0.1.0", "0.1.0")
        self.assertEqual(self.run_tool("0.1.1").returncode, 0)

    def test_a_release_has_changes(self):
        self.run_tool("0.1.0", "--write")
        self.refuses("no unreleased change", "0.1.1", "--write")
        self.assertIn("0.1.0", self.text("penstock/version.h"))

    def test_files_are_made_from_the_commit_of_the_release_only(self):
        self.refuses("this commit is not 0.2.0", "0.2.0", "--build")
        self.run_tool("0.2.0", "--write")
        self.refuses("not committed", "0.2.0", "--build")
        self.assertFalse((self.root / "dist").exists())

    def test_files_have_checksums(self):
        self.run_tool("0.2.0", "--write")
        self.commit()
        done = self.run_tool("0.2.0", "--build")
        self.assertEqual(done.returncode, 0, done)
        folder = self.root / "dist/0.2.0"
        self.assertEqual({path.name for path in folder.iterdir()},
                         {"SHA256SUMS", "penstock-0.2.0.tar.gz",
                          "package.file", "wheel.file",
                          "tensorflow_wheel.file", "torch_wheel.file"})
        subprocess.run(["sha256sum", "--check", "--strict", "SHA256SUMS"],
                       cwd=folder, check=True, stdout=subprocess.DEVNULL)
        self.assertEqual(len((folder / "SHA256SUMS").read_text().split("\n")),
                         6)
        self.refuses("is not empty", "0.2.0", "--build")

    def test_a_builder_that_fails_ends_it(self):
        self.put("tools/package", "#!/bin/sh\nexit 3\n")
        self.run_tool("0.2.0", "--write")
        self.commit()
        self.refuses("tools/package failed", "0.2.0", "--build")
        self.assertFalse((self.root / "dist/0.2.0/SHA256SUMS").exists())


if __name__ == "__main__":
    unittest.main()
