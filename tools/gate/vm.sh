# Runs the tests of tools/test that want RDMA devices. Source it, do not run it.
# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of tools/test and of lib.sh

# Writes the tests that need a virtual machine to vm.xml and vm_labels.
# Usage: find_vm_tests PATTERN...
find_vm_tests() {
  local flags=() status=0 without=''
  if $full; then flags=(--full); fi
  $tensorflow || without=" except attr(tags, '[\[ ]tensorflow[,\]]', \$all)"
  : >"$work/vm_labels"
  # Ignores exit code 3: some patterns cannot be queried. `bazel test` reports
  # this, for the same patterns.
  run_bazel query --keep_going --output=xml --noshow_progress \
    "let all = tests($(query_of "$@")) in
     attr(tags, '[\[ ]vm(-own|-two)?[,\]]', \$all)$without" \
    >"$work/vm.xml" 2>"$work/query_log" || status=$?
  if ((status != 0 && status != 3)); then
    cat "$work/query_log" >&2
    printf 'failed\tbazel query\texit code %d\n' "$status" >>"$work/tally"
  fi
  [[ ! -s $work/vm.xml ]] || python3 "$root/tools/gate/vm_tests.py" list \
    "${flags[@]}" "$work/vm.xml" >"$work/vm_labels"
}

# Builds and runs the tests that find_vm_tests found.
run_vm_tests() {
  local labels flags=() status=0
  mapfile -t labels <"$work/vm_labels"
  if ! $vm; then
    printf 'not run: %s\n' "${labels[@]}"
    printf 'skipped\t%s\tno VM: --without-vm\n' "${labels[@]}" \
      >>"$work/tally"
    return
  fi
  begin_step VM
  if $full; then flags+=(--full); fi
  if $retry; then flags+=(--retry); fi
  watch_bazel 'VM, build' build --keep_going \
    -- "${labels[@]}" || status=$? # otherwise the events say what failed
  ((status != 8)) || exit 130
  python3 "$root/tools/gate/vm_tests.py" run "${flags[@]}" \
    --bin="$(run_bazel info bazel-bin 2>/dev/null)" \
    --events="$work/VM, build.events" \
    --times="$work/times" "$work/vm.xml" >"$work/vm_tally" || exit
  cat "$work/vm_tally" >>"$work/tally"
}
