"""torch_test(): a test that runs a Python file with PyTorch's Python and
Penstock's backend."""

load("@torch//:defs.bzl", "TORCH_PYTHON")
load("//third_party/torch:torch.bzl", "NEEDS_TORCH")

def torch_test(name, main, args = [], data = [], tags = [], timeout = "moderate"):
    """Runs a Python file as a test. The file may import the files of its folder.

    Args:
      name: the name of the test.
      main: the file.
      args: arguments for it.
      data: further files that the test needs.
      tags: more of them.
      timeout: Bazel's.
    """
    native.sh_test(
        name = name,
        srcs = ["//tests/frameworks/torch:run_with_torch.sh"],
        # Replaces $(location), which tools/gate/vm_tests.py would have to
        # expand.
        args = [TORCH_PYTHON, "%s/%s" % (native.package_name(), main)] + args,
        data = [
            main,
            "//frameworks/torch:_backend.so",
            "//frameworks/torch:python",
            "//tests/frameworks/torch:ranks.py",
            "//tests/frameworks/torch:two_hosts.py",
        ] + data,
        # Reserves two cores, because each test starts several processes that
        # use all cores.
        tags = [
            "cpu:2",
            "no-asan",
            "no-tsan",
            "no-ubsan",
            "torch",
        ] + tags,
        target_compatible_with = NEEDS_TORCH,
        timeout = timeout,
    )
