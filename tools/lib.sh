# Defines functions that the scripts of this folder share. Source it, do not run
# it.
# shellcheck shell=bash

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# Prints the comment at the head of a script, which is its help.
# Usage: print_help SCRIPT
print_help() {
  sed -n -e '1d' -e '/^#/!q' -e 's/^# \{0,1\}//p' "$1"
}

# Prints the version of Penstock, from its only place.
penstock_version() {
  sed -n 's/^#define PENSTOCK_VERSION "\(.*\)"$/\1/p' "$root/penstock/version.h"
}

# A program that runs Bazel's command line, with its own arguments; none by
# default. Empty for `query` and `info`, whose output is parsed.
bazel_prefix=()

# Runs Bazel in this tree, with its cache in XDG_CACHE_HOME or HOME; ~ in
# .bazelrc is the home of the password database. With PENSTOCK_BAZEL_OUTPUT_BASE
# set, uses a separate server and output folder, and keeps the bazel-* links.
# Usage: run_bazel COMMAND ARGUMENT...
run_bazel() {
  local startup=(--max_idle_secs=600) command=$1
  shift
  case $command in
    build | test | info)
      set -- --disk_cache="${XDG_CACHE_HOME:-$HOME/.cache}/penstock/bazel" "$@"
      ;;
  esac
  if [[ -n ${PENSTOCK_BAZEL_OUTPUT_BASE:-} ]]; then
    startup+=(--output_base="$PENSTOCK_BAZEL_OUTPUT_BASE")
    [[ $command == query ]] ||
      set -- --experimental_convenience_symlinks=ignore "$@"
  fi
  # Replaces the subshell, so that a wait for this shell waits for Bazel's
  # client.
  (cd "$root" && exec "${bazel_prefix[@]}" bazel "${startup[@]}" "$command" "$@")
}
