"""A cc_test for tests of the whole stack, with the dependencies that most of
them need."""

load("//tests:cc.bzl", "stack_test")

_DEPS = [
    ":stack_test",
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
