#!/usr/bin/python3 -B
"""Checks that debian/control names all packages that a build needs."""

import pathlib
import re
import unittest

# Build-essential, which no package names.
ESSENTIAL = {"dpkg-dev", "g++"}
# Packages of tools/setup --packages that run debian/rules.
HELPERS = {"debhelper", "dh-python"}
# The package of each of third_party/system's libraries.
LIBRARIES = {
    "absl": "libabsl-dev", "cli11": "libcli11-dev", "crypto": "libssl-dev",
    "curl": "libcurl4-openssl-dev", "dlpack": "libdlpack-dev",
    "grpc++": "libgrpc++-dev", "hwy": "libhwy-dev",
    "json": "nlohmann-json3-dev",
    "prometheus": "prometheus-cpp-dev", "protobuf": "libprotobuf-dev",
    "pybind11": "pybind11-dev", "rocksdb": "librocksdb-dev", "spdlog": "libspdlog-dev",
    "ssl": "libssl-dev", "tbb": "libtbb-dev", "xxhash": "libxxhash-dev",
    "zlib": "zlib1g-dev"}


def read(path):
    return pathlib.Path(path).read_text(encoding="utf-8")


def build_depends():
    field = re.search(r"^Build-Depends:((?:.*\n)(?:[ #].*\n)*)",
                      read("debian/control"), re.M)[1]
    names = [re.match(r"[\w.+-]+", item.strip())[0]
             for item in field.split(",")]
    return {name.replace("debhelper-compat", "debhelper") for name in names}


def set_up(name):
    """Returns the elements of an array of tools/setup."""
    return set(re.search(rf"^(?:readonly )?{name}=\(([^)]*)\)",
                         read("tools/setup"), re.M)[1].split())


class BuildDependsTest(unittest.TestCase):

    def test_they_are_what_set_up_installs_for_a_package_build(self):
        self.assertLessEqual(HELPERS, set_up("PACKAGING_PACKAGES"))
        self.assertEqual(build_depends(),
                         set_up("BUILD_PACKAGES") - ESSENTIAL | HELPERS)

    def test_they_have_each_library_that_is_linked_to_what_is_packed(self):
        packed = read("tests/packages/packed").splitlines()
        targets = re.search(r"^TARGETS := ((?:.*\\\n)*.*)\n",
                            read("debian/rules"), re.M)[1]
        self.assertLessEqual(set(re.findall(r"//[^ ]+", targets)), set(packed))
        libraries = [label.partition(":")[2] for label in packed
                     if label.startswith("@system//")]
        self.assertIn("grpc++", libraries)
        self.assertLessEqual({LIBRARIES[name] for name in libraries},
                             build_depends())


if __name__ == "__main__":
    unittest.main()
