"""A stand-in for rules_cc: Debian's package does not fit Debian's Bazel.

Bazel 4.2 still has the C++ rules built in; this file hands them on.
"""

cc_binary = native.cc_binary
cc_import = native.cc_import
cc_library = native.cc_library
cc_proto_library = native.cc_proto_library
cc_test = native.cc_test
cc_toolchain = native.cc_toolchain
cc_toolchain_suite = native.cc_toolchain_suite
fdo_prefetch_hints = native.fdo_prefetch_hints
fdo_profile = native.fdo_profile
objc_library = native.objc_library

def cc_flags_supplier(**kwargs):
    pass

def compiler_flag(**kwargs):
    pass
