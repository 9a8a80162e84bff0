# Runs the tests of tools/test in TensorFlow's stock wheel. Source it, do not
# run it.
# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of tools/test and of lib.sh

# Installs TensorFlow, and lets Bazel see it. If TensorFlow is not available,
# its tests count as skipped.
prepare_tensorflow() {
  local why='no TensorFlow: --without-tensorflow'
  if $tensorflow; then
    if "$root/tools/setup" --tensorflow; then
      with_clock 'letting Bazel see TensorFlow' '' sync_tensorflow
      return
    fi
    why='no TensorFlow, see above'
  fi
  skip_tensorflow //tests/frameworks/tensorflow "$why"
  tensorflow=false
}

# Lets Bazel see another TensorFlow. Prints nothing on success. Never fails,
# because a later build reports what is missing.
sync_tensorflow() {
  run_bazel sync --only=tensorflow >"$work/log" 2>&1 || cat "$work/log" >&2
}

# Counts a test as skipped. Usage: skip_tensorflow NAME WHY
skip_tensorflow() {
  printf '\n-- not run: the tests of //frameworks/tensorflow: %s\n' "$2"
  printf 'skipped\t%s\t%s\n' "$1" "$2" >>"$work/tally"
}

# Runs the plugin's tests once more, with another release than the plain tests.
# Usage: run_tests_in_tensorflow RELEASE [PATTERN...]
run_tests_in_tensorflow() {
  local name="TensorFlow ${1%.*}" status=0 labels retries=1 why=''
  $tensorflow || return 0
  mapfile -t labels < <(complete_patterns "${@:2}")
  mapfile -t labels < <(run_bazel query --keep_going --noshow_progress \
    "attr(tags, '[\[ ]tensorflow[,\]]', tests($(query_of "${labels[@]}")))" \
    2>/dev/null)
  ((${#labels[@]} > 0)) || return 0
  if [[ -n ${PENSTOCK_TENSORFLOW:-} ]]; then
    why='PENSTOCK_TENSORFLOW names the one to test with'
  elif ! "$root/tools/setup" --tensorflow="$1"; then
    why="no $name, see above"
  fi
  if [[ -n $why ]]; then
    skip_tensorflow "$name: //tests/frameworks/tensorflow" "$why"
    return
  fi
  ! $retry || retries=2
  PENSTOCK_TENSORFLOW=$(tensorflow_home "$1") watch_bazel "$name" test \
    --keep_going --test_tag_filters=-vm,-vm-own,-vm-two \
    --flaky_test_attempts=$retries -- "${labels[@]}" || status=$?
  ((status != 8)) || exit 130
  python3 "$root/tools/gate/count_tests.py" --config="$name" \
    --exit-code="$status" "$work/$name.events" >>"$work/tally"
}
