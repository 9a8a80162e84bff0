"""tensorflow_test(): a test that runs a Python file with TensorFlow's Python
and Penstock's plugin."""

load("@tensorflow//:defs.bzl", "TENSORFLOW_PYTHON")
load("//third_party/tensorflow:plugin.bzl", "NEEDS_TENSORFLOW")

def tensorflow_test(
        name,
        main,
        data = [],
        env = {},
        tags = [],
        timeout = "moderate"):
    """Runs a Python file as a test. The file may import the files of its
    folder.

    Args:
      name: the name of the test.
      main: the file.
      data: further files that the test needs.
      env: what is set when it starts.
      tags: more of them.
      timeout: Bazel's.
    """
    native.sh_test(
        name = name,
        srcs = ["run_with_tensorflow.sh"],
        args = [
            TENSORFLOW_PYTHON,
            # Used instead of $(location), because tools/gate/vm_tests.py does
            # not expand $(location).
            "%s/%s" % (native.package_name(), main),
        ],
        data = native.glob(
            ["*.py"],
            exclude = ["*_test.py"],
        ) + [
            main,
            "//bench:ports.py",
            "//frameworks/tensorflow:libpenstock_tensorflow_loader.so",
            "//frameworks/tensorflow:penstock_tensorflow",
            "//frameworks/tensorflow:python",
        ] + data,
        env = env,
        # Reserves two cores, because each test starts several processes that
        # use all cores.
        tags = [
            "cpu:2",
            "no-asan",
            "no-tsan",
            "no-ubsan",
            "tensorflow",
        ] + tags,
        target_compatible_with = NEEDS_TENSORFLOW,
        timeout = timeout,
    )
