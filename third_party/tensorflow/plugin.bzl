"""tensorflow_plugin: a shared library that the stock wheel of TensorFlow loads.

tensorflow_program: a program for tests, of parts of the plugin.
"""

load("@tensorflow//:defs.bzl", "TENSORFLOW_RELEASE")
load("//third_party:cc.bzl", "UNOPTIMIZED", "cc_binary")

# The constraint of targets that need an installed TensorFlow; see tools/setup
# --tensorflow.
NEEDS_TENSORFLOW = [] if TENSORFLOW_RELEASE else ["//third_party/tensorflow:missing"]

def _flavor_impl(_settings, _attr):
    return {"//third_party/tensorflow:flavor": True}

_flavor = transition(
    implementation = _flavor_impl,
    inputs = [],
    outputs = ["//third_party/tensorflow:flavor"],
)

def _flavored_impl(ctx):
    source = ctx.attr.target[0][DefaultInfo].files.to_list()[0]
    out = ctx.actions.declare_file(ctx.attr.out)
    ctx.actions.symlink(output = out, target_file = source)
    return [DefaultInfo(
        files = depset([out]),
        runfiles = ctx.runfiles([out]),
    )]

_flavored = rule(
    implementation = _flavored_impl,
    attrs = {
        "out": attr.string(mandatory = True),
        "target": attr.label(mandatory = True, cfg = _flavor),
        "_allowlist_function_transition": attr.label(
            default = "@bazel_tools//tools/allowlists/function_transition_allowlist",
        ),
    },
)

def tensorflow_plugin(name, srcs, deps, exports, precompiled, **kwargs):
    """Makes lib<name>.so. All of it and of its deps is built for TensorFlow.

    Args:
      name: of the library.
      srcs: C++ files that nothing refers to, such as registrars.
      deps: cc_libraries.
      exports: a linker's version script that says what others may see.
      precompiled: the label of a precompiled_header that the sources begin with.
      **kwargs: as usual.
    """
    cc_binary(
        name = name + "_linked",
        srcs = srcs,
        additional_linker_inputs = [exports],
        copts = TENSORFLOW_COPTS,
        linkopts = [
            "-Wl,-z,defs",
            "-Wl,--version-script=$(location %s)" % exports,
        ],
        linkshared = True,
        precompiled = precompiled,
        tags = ["manual"],
        target_compatible_with = NEEDS_TENSORFLOW,
        # Names TensorFlow's libraries last, because libraries are searched in
        # this order. If TensorFlow exports names of a library that we bring
        # ourselves, ours come first.
        deps = deps + ["@tensorflow//:libraries"],
    )
    _flavored(
        name = name,
        out = "lib%s.so" % name,
        target = ":%s_linked" % name,
        target_compatible_with = NEEDS_TENSORFLOW,
        **kwargs
    )

def tensorflow_program(name, srcs, deps, **kwargs):
    """Makes a program that is linked with TensorFlow's libraries, for tests.

    Args:
      name: of the program.
      srcs: C++ files.
      deps: cc_libraries, all of which are built for TensorFlow.
      **kwargs: as usual.
    """
    cc_binary(
        name = name + "_linked",
        testonly = True,
        srcs = srcs,
        copts = UNOPTIMIZED + TENSORFLOW_COPTS,
        precompiled = None,
        tags = ["manual"],
        target_compatible_with = NEEDS_TENSORFLOW,
        deps = deps + ["@tensorflow//:libraries"],
    )
    _flavored(
        name = name,
        testonly = True,
        out = name,
        target = ":%s_linked" % name,
        target_compatible_with = NEEDS_TENSORFLOW,
        **kwargs
    )

# The flags of the wheel's build that change the layout of structures.
TENSORFLOW_COPTS = ["-DEIGEN_MAX_ALIGN_BYTES=64"]
