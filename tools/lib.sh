# Shared by the scripts beside it; source it, do not run it.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Bazel in this tree. With PENSTOCK_BAZEL_OUTPUT_BASE set, a server and an
# output folder of its own, and the bazel-* links stay as they are.
# Usage: run_bazel COMMAND ARGUMENT...
run_bazel() {
  local startup=(--max_idle_secs=600) command=$1
  shift
  if [[ -n ${PENSTOCK_BAZEL_OUTPUT_BASE:-} ]]; then
    startup+=(--output_base="$PENSTOCK_BAZEL_OUTPUT_BASE")
    [[ $command == query ]] ||
      set -- --experimental_convenience_symlinks=ignore "$@"
  fi
  (cd "$root" && bazel "${startup[@]}" "$command" "$@")
}
