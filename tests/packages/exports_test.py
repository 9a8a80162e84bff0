#!/usr/bin/python3 -B
"""Tests that the libraries export the functions of the public headers, and
nothing else."""

import pathlib
import re
import subprocess
import unittest

MAP = "penstock/libpenstock.map"
# Names that the libraries may export in addition: objects that must exist only
# once in a process (see MAP), and thread-local variables, which gold lists
# although they are local.
SHARED_OBJECTS = re.compile(r"^(guard variable for )?(grpc_core|absl)::")


def symbols(*command):
    """Returns the names of defined symbols, each with nm's letter for its
    kind."""
    out = subprocess.run(["nm", "--defined-only", *command], text=True,
                         capture_output=True, check=True).stdout
    return {(fields[2].split("@")[0], fields[1]) for fields in
            map(str.split, out.splitlines()) if len(fields) == 3}


def demangled(names):
    return subprocess.run(["c++filt"], input="\n".join(names), text=True,
                          capture_output=True, check=True).stdout.splitlines()


def named_by_map():
    text = pathlib.Path(MAP).read_text(encoding="utf-8")
    return {name for name in re.findall(r"^ +(_Z\S+);$", text, re.M)
            if "*" not in name}


class ExportsTest(unittest.TestCase):

    def check(self, found):
        names = {name for name in found if name.startswith("_Z")}
        others = demangled(sorted(names - named_by_map()))
        self.assertEqual([], [name for name in others
                              if not SHARED_OBJECTS.match(name)])
        self.assertEqual(set(), named_by_map() - names)

    def test_the_shared_library_exports_what_its_map_names(self):
        self.check({name for name, kind in
                    symbols("-D", "penstock/libpenstock.so.0")
                    if kind not in "Ab"})

    def test_the_static_library_has_the_same_global_names(self):
        # Leaves out unique symbols (of templates and inline variables), because
        # objcopy cannot make them local.
        self.check({name for name, kind in
                    symbols("-g", "penstock/libpenstock.a") if kind != "u"})

    def test_objects_that_are_one_per_process_are_shared(self):
        names = demangled(sorted(
            name for name, kind in symbols("-D", "penstock/libpenstock.so.0")
            if kind == "u"))
        for part in ("Unwakeable>::value_", "ClientChannelFactory",
                     "kMovedFromString"):
            with self.subTest(part=part):
                self.assertTrue([name for name in names if part in name], names)


if __name__ == "__main__":
    unittest.main()
