# Runs Bazel with progress, for tools/test and tools/lint. Source it after
# lib.sh.
# shellcheck shell=bash

# Runs Bazel; see watch.py. Leaves NAME.events and NAME.gz (a profile) in
# GATE_FOLDER, which tools/test sets.
# Usage: watch_bazel NAME test|build ARGUMENT...
watch_bazel() {
  local files=${GATE_FOLDER:?}/$1
  local flags=(--noshow_progress --noshow_loading_progress --show_result=0)
  local bazel_prefix=("${root:?}/tools/gate/watch.py" --name="$1"
    --events="$files.events")
  [[ $2 != test ]] || bazel_prefix+=(--testing)
  [[ ! -t 1 ]] || flags+=(--color=yes)
  run_bazel "$2" "${flags[@]}" --profile="$files.gz" \
    --build_event_json_file="$files.events" "${@:3}"
}
