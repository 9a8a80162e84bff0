"""cc_library and cc_test for tests. Optimized for short builds, not for speed.

Neither the code of a test nor what it takes from headers is optimized. Code
under test is compiled as for users. `precompiled` names what sources begin
with. With `optimized = True` a test's code is optimized and has no precompiled
headers: for programs that compute for long.
"""

load("//third_party:cc.bzl", "UNOPTIMIZED", "begin_with")

_TESTS = "//third_party/precompiled:tests"
_GRPC_TESTS = "//third_party/precompiled:grpc_tests"
_STACK_TESTS = "//tests/e2e:stack_tests"

def _arguments(precompiled, optimized, arguments):
    if optimized:
        return arguments
    copts = UNOPTIMIZED + arguments.get("copts", [])
    return begin_with(precompiled, dict(arguments, copts = copts))

def cc_library(precompiled = _TESTS, optimized = False, **kwargs):
    """Like native.cc_library, for helpers of tests."""
    kwargs["testonly"] = True
    native.cc_library(**_arguments(precompiled, optimized, kwargs))

def cc_test(precompiled = _TESTS, optimized = False, **kwargs):
    """Like native.cc_test, for sources that begin with GoogleTest's
    headers."""
    native.cc_test(**_arguments(precompiled, optimized, kwargs))

def grpc_library(**kwargs):
    """Like cc_library, for sources that begin with GoogleTest's and gRPC's
    headers."""
    cc_library(**dict(kwargs, precompiled = _GRPC_TESTS))

def grpc_test(precompiled = _GRPC_TESTS, **kwargs):
    """Like cc_test, for sources that begin with GoogleTest's and gRPC's
    headers."""
    cc_test(precompiled = precompiled, **kwargs)

def stack_test(**kwargs):
    """Like cc_test, for sources that begin with tests/e2e/stack_tests.h."""
    cc_test(precompiled = _STACK_TESTS, **kwargs)
