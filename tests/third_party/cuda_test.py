#!/usr/bin/python3 -B
"""Tests that the build finds CUDA's compiler, works without the compiler, and
reports which of the two it does.

The compilers in this test are scripts. Instead of a fatbin, a script writes its
own arguments. Bazel runs in the working tree, with a server of its own.
"""

import pathlib
import subprocess
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
FATBIN = "transport/device/kernels:reduce_array.fatbin"
ARRAY = "transport/device/kernels:reduce_array.cc"

NVCC = """#!/bin/sh
case $1 in
--version) echo 'Cuda compilation tools, release {release}, V{release}.99' ;;
--list-gpu-code) printf '%s\\n' {codes} ;;
*)
  for argument; do
    [ "$out" != next ] || out=$argument
    case $argument in -o) out=next ;; esac
  done
  {compile}
  echo "$@" >"$out" ;;
esac
"""


class CudaTest(unittest.TestCase):

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.base = pathlib.Path(cls.folder.name, "base")

    @classmethod
    def tearDownClass(cls):
        cls.bazel({}, "shutdown")
        # Makes Bazel's outputs writable, so that the folder can be removed.
        subprocess.run(["chmod", "-R", "u+w", cls.folder.name], check=True)
        cls.folder.cleanup()

    @classmethod
    def bazel(cls, environment, command, *arguments):
        environment = {"HOME": str(pathlib.Path.home()),
                       "PATH": "/usr/bin:/bin", **environment}
        return subprocess.run(
            ["bazel", f"--output_base={cls.base}", command, *arguments],
            cwd=ROOT, env=environment, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def build(self, environment, target):
        """Returns Bazel's output and the built file, or None if it failed."""
        flags = ["--experimental_convenience_symlinks=ignore", "--jobs=2"]
        done = self.bazel(environment, "build", *flags, "//" + target)
        if done.returncode != 0:
            return done.stdout, None
        found = self.bazel(environment, "info", "bazel-bin").stdout
        file = pathlib.Path(found.strip().splitlines()[-1],
                            target.replace(":", "/"))
        return done.stdout, file.read_text(encoding="utf-8")

    def toolkit(self, release, codes, compile_=":"):
        home = pathlib.Path(tempfile.mkdtemp(dir=self.folder.name))
        (home / "bin").mkdir()
        nvcc = home / "bin/nvcc"
        nvcc.write_text(NVCC.format(release=release, codes=" ".join(codes),
                                    compile=compile_), encoding="utf-8")
        nvcc.chmod(0o755)
        return str(home)

    def test_none_is_built_without_and_says_so(self):
        said, array = self.build({"PENSTOCK_CUDA": "none"}, ARRAY)
        self.assertIn("Built without GPU kernels: PENSTOCK_CUDA is none", said)
        self.assertIn("kReduceArchitectures[] = \"\";", array)

    def test_a_folder_without_nvcc_is_an_error(self):
        said, array = self.build({"PENSTOCK_CUDA": self.folder.name}, ARRAY)
        self.assertIsNone(array)
        self.assertIn(f"there is no {self.folder.name}/bin/nvcc", said)

    def test_an_nvcc_that_does_not_compile_is_an_error_if_it_was_named(self):
        home = self.toolkit("11.2", ["sm_80"],
                            "echo unsupported GNU version >&2; exit 1")
        said, array = self.build({"PENSTOCK_CUDA": home}, ARRAY)
        self.assertIsNone(array)
        self.assertIn("does not compile here: unsupported GNU version", said)

    def test_an_nvcc_that_does_not_compile_is_left_alone_otherwise(self):
        home = self.toolkit("11.2", ["sm_80"],
                            "echo unsupported GNU version >&2; exit 1")
        said, array = self.build({"CUDA_HOME": home}, ARRAY)
        self.assertIn("Built without GPU kernels: ", said)
        self.assertIn("unsupported GNU version", said)
        self.assertIn("kReduceArchitectures[] = \"\";", array)

    def test_cuda_12_compiles_for_all_from_volta_to_hopper(self):
        codes = ["sm_50", "sm_60", "sm_70", "sm_72", "sm_75", "sm_80", "sm_86",
                 "sm_87", "sm_89", "sm_90", "sm_90a"]
        environment = {"CUDA_HOME": self.toolkit("12.4", codes)}
        said, arguments = self.build(environment, FATBIN)
        self.assertNotIn("Built without", said)
        for number in (70, 75, 80, 86, 89, 90):
            self.assertIn(f" -gencode=arch=compute_{number},code=sm_{number} ",
                          arguments)
        self.assertIn(" -gencode=arch=compute_90,code=compute_90 ", arguments)
        self.assertEqual(arguments.count("-gencode"), 7)
        self.assertIn(" -Xfatbin=-compress-all ", arguments)
        self.assertIn(" -fmad=false ", arguments)
        _, array = self.build(environment, ARRAY)
        self.assertIn('"sm_70 sm_75 sm_80 sm_86 sm_89 sm_90 compute_90"', array)

    def test_a_later_toolkit_compiles_for_what_it_knows(self):
        codes = ["sm_75", "sm_80", "sm_90", "sm_100", "sm_121"]
        home = self.toolkit("13.0", codes)
        path = f"{home}/bin:/usr/bin:/bin"
        _, arguments = self.build({"PATH": path}, FATBIN)
        self.assertEqual(arguments.count("-gencode"), 4)
        self.assertNotIn("sm_70", arguments)
        self.assertIn(" --compress-mode=size ", arguments)

    def test_the_array_has_the_bytes_of_the_fatbin(self):
        environment = {"CUDA_HOME": self.toolkit("13.1", ["sm_75", "sm_90"])}
        _, fatbin = self.build(environment, FATBIN)
        _, array = self.build(environment, ARRAY)
        numbers = array[array.index("= {") + 3:array.index("0};")]
        self.assertEqual([int(number) for number in numbers.split(",")
                          if number.strip()], list(fatbin.encode()))


if __name__ == "__main__":
    unittest.main()
