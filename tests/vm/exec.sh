#!/bin/sh
# Runs a test program that also runs elsewhere; see vm_test.bzl.
[ $# -gt 0 ] || {
  echo "run it by tools/test, which gives it its program" >&2
  exit 2
}
exec "$@"
