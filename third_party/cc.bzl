"""cc_library and cc_binary whose sources begin with precompiled headers.

g++ then parses the standard library and Abseil once instead of once per source,
which saves a quarter of the time of a build. A source still includes what it
uses: clang-tidy (tools/lint) compiles it without precompiled headers.
"""

# Flags for code whose build time matters more than its speed. Without
# optimization, glibc has nothing to fortify, and warns.
UNOPTIMIZED = [
    "-O0",
    "-U_FORTIFY_SOURCE",
]

def begin_with(header, arguments):
    """The arguments of a rule, for sources that begin with all of a header.

    Args:
      header: the whole label of a precompiled_header; None for none.
      arguments: a dictionary, as of native.cc_library.
    """
    if not header or not arguments.get("srcs"):
        return arguments
    option = "$(GENDIR)/%s.h" % header[len("//"):].replace(":", "/")
    return dict(
        arguments,
        copts = ["-include", option] + arguments.get("copts", []),
        deps = arguments.get("deps", []) + [header],
    )

_STANDARD = "//third_party/precompiled:standard"

def cc_library(precompiled = _STANDARD, **kwargs):
    """Like native.cc_library.

    Args:
      precompiled: None for sources whose compiler options differ in more than
        definitions, warnings and folders of headers.
      **kwargs: as usual.
    """
    native.cc_library(**begin_with(precompiled, kwargs))

def cc_binary(precompiled = _STANDARD, **kwargs):
    """Like native.cc_binary. `precompiled` is as in cc_library."""
    native.cc_binary(**begin_with(precompiled, kwargs))
