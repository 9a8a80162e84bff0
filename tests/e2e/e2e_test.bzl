"""Macros for tests of the whole stack: here, and in the virtual machine."""

load("//tests:cc.bzl", "stack_test")
load("//tests/vm:vm_test.bzl", "vm_test")

_DEPS = [
    "//tests/e2e:stack_test",
    "//penstock",
    "@system//:absl",
    "@system//:grpc++",
    "@system//:gtest_main",
]

def e2e_test(name, src = None, size = "medium", timeout = "short", deps = [], **kwargs):
    """A test of the whole stack that takes at most one minute.

    Args:
      name: the test's name.
      src: the source; NAME.cc by default.
      size: Bazel's size.
      timeout: Bazel's timeout.
      deps: what the test needs in addition to the stack, gRPC, abseil and GoogleTest.
      **kwargs: more arguments of cc_test.
    """
    stack_test(
        name = name,
        size = size,
        timeout = timeout,
        srcs = [src or name + ".cc"],
        deps = _DEPS + deps,
        **kwargs
    )

def tests_over_verbs(names, full = []):
    """Runs tests of the same package again, over verbs in the virtual machine.

    Args:
      names: the tests.
      full: those that belong to the full tier only.
    """
    for name in names:
        vm_test(
            name = name + "_over_verbs",
            full = name in full,
            program = ":" + name,
        )

def tests_with_windows(names, full = []):
    """Like tests_over_verbs, with memory windows.

    Leave out tests whose time limits are too short for one processor. In the
    full tier only are tests whose messages are too small for windows, and tests
    of the end of a process, where windows make no difference.

    Args:
      names: the tests.
      full: those that belong to the full tier only.
    """
    for name in names:
        vm_test(
            name = name + "_with_windows",
            full = name in full,
            program = ":" + name,
            windows = True,
        )
