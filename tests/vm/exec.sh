#!/bin/sh
# Runs a test program that also runs elsewhere; see vm_test.bzl. --windows
# selects the behaviour of windows.h, and one processor: on several, Soft-RoCE's
# queue pairs with windows stop working (docs/verbs.md).
one_processor=
if [ "${1:-}" = --windows ]; then
  shift
  export RDMA_VM_WINDOWS=1
  one_processor="taskset -c 0"
fi
[ $# -gt 0 ] || {
  echo "run it by tools/test, which gives it its program" >&2
  exit 2
}
# shellcheck disable=SC2086 # words, or nothing
exec $one_processor "$@"
