#!/usr/bin/env -S python3 -B
"""Tests the checks to which tools/lint holds the code."""

import pathlib
import shutil
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
GOOD = """\
#include "transport/base/mutex.h"

namespace penstock {

class Counter {
 public:
  void Add() {
    base::MutexLock lock(&mu_);
    ++count_;
  }

 private:
  base::Mutex mu_;
  int count_ ABSL_GUARDED_BY(mu_) = 0;
};

void Count(Counter* counter) { counter->Add(); }

}  // namespace penstock
"""


class LintTest(unittest.TestCase):

    def lint(self, text):
        """Returns the output and exit code of clang-tidy with lint.bzl's flags.
        """
        if not shutil.which("clang-tidy"):
            self.skipTest("no clang-tidy here (apt-get install clang-tidy)")
        with tempfile.TemporaryDirectory() as folder:
            source = pathlib.Path(folder, "counter.cc")
            source.write_text(text)
            run = subprocess.run(
                ["clang-tidy", "--quiet", f"--config-file={ROOT}/.clang-tidy",
                 source, "--", "-std=c++17", "-Wthread-safety", "-iquote",
                 ROOT], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                text=True, check=False)
        return run.stdout, run.returncode

    def test_good_code_passes(self):
        self.assertEqual(self.lint(GOOD), ("", 0))

    def test_what_is_guarded_is_not_used_without_its_lock(self):
        said, code = self.lint(
            GOOD.replace("base::MutexLock lock(&mu_);", ""))
        self.assertNotEqual(code, 0)
        self.assertIn("clang-diagnostic-thread-safety-analysis", said)

    def test_the_checks_of_the_configuration_are_errors(self):
        said, code = self.lint(GOOD.replace(
            "void Count(Counter* counter)",
            "int Twice(std::string text) { return 2 * text.size(); }\n"
            "void Count(Counter* counter)").replace(
                "\n\nnamespace", "\n#include <string>\n\nnamespace", 1))
        self.assertNotEqual(code, 0)
        self.assertIn("performance-unnecessary-value-param", said)

    def test_without_clang_tidy_it_says_what_to_install(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("bash", "dirname", "env"):
                pathlib.Path(folder, tool).symlink_to(shutil.which(tool))
            run = subprocess.run([ROOT / "tools/lint"], check=False, text=True,
                                 stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE, env={"PATH": folder})
        self.assertEqual(run.returncode, 77)
        self.assertIn("apt-get install clang-tidy", run.stdout)


if __name__ == "__main__":
    unittest.main()
