#!/bin/sh
# Runs a test program that also runs elsewhere; see vm_test.bzl.
exec "$@"
