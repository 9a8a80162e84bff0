"""Tests that run in tools/rdma-vm, made of programs that also run elsewhere."""

def vm_test(
        name,
        program,
        args = [],
        kind = "vm",
        windows = False,
        full = False,
        size = "medium",
        **kwargs):
    """Runs the test `program` once more, in the virtual machine.

    Args:
      name: of the target.
      program: a test of the same package (":x"), which sees by RDMA_VM in its
        environment where it is.
      args: for the program.
      kind: "vm", "vm-own" or "vm-two", as in docs/testing.md.
      windows: whether memory windows are to be trusted although Soft-RoCE does
        not enforce their range. `program` links //tests/vm:windows.
      full: whether it belongs to the full tier only.
      size: Bazel's.
      **kwargs: of sh_test.
    """
    option = ["--windows"] if windows else []
    native.sh_test(
        name = name,
        size = size,
        srcs = ["//tests/vm:exec.sh"],
        # Replaces $(rootpath), which tools/gate/vm_tests.py would have to
        # expand.
        args = option +
               ["%s/%s" % (native.package_name(), program[1:])] + args,
        data = [program],
        tags = [kind] + (["full"] if full else []),
        **kwargs
    )
