# The steps of a run of tools/test: the progress of the run, and the duration of
# each step. Durations of the last complete run are kept in ~/.cache/penstock.
# Source it, do not run it.
# shellcheck shell=bash

# Minutes on a fresh machine with two cores, for use until the machine has its
# own durations. A name with the prefix of a tier is only for that tier.
declare -rA USUAL_MINUTES=(
  [set-up]=2
  [checks]=1
  [lint]=1
  [full:lint]=30
  [tests]=27
  [quick:tests]=4
  [full:tests]=60
  [VM]=8
  [full:VM]=15
  [TensorFlow]=10
  [asan]=60
  [ubsan]=60
  [tsan]=120
  [distro]=120
  [demo]=1
)

# Prints a time as a person says it: 40 s, 3 min, 1 h 20 min.
# Usage: duration SECONDS
duration() {
  local minutes=$((($1 + 30) / 60))
  if (($1 < 60)); then
    echo "$1 s"
  elif ((minutes < 60)); then
    echo "$minutes min"
  else
    echo "$((minutes / 60)) h $((minutes % 60)) min"
  fi
}

# Prints the time in milliseconds.
now_ms() { echo $((${EPOCHREALTIME/[^0-9]/} / 1000)); }

# Records the duration of something that began at BEGIN_MS.
# Usage: note_time KIND NAME BEGIN_MS
note_time() {
  local ms=$(($(now_ms) - $3))
  printf '%s\t%s\t%d.%03d\n' "$1" "$2" $((ms / 1000)) $((ms % 1000)) \
    >>"$GATE_FOLDER/times"
}

# Runs a command and records its duration for --profile.
# Usage: timed KIND NAME COMMAND [ARGUMENT...]
timed() {
  local begin status=0
  begin=$(now_ms)
  "${@:3}" || status=$?
  note_time "$1" "$2" "$begin"
  return "$status"
}

# Begins a run. Without a tier nothing is estimated, and no durations are kept.
# Usage: plan_steps TIER STEP...
plan_steps() {
  local name seconds
  GATE_BEGUN=$EPOCHSECONDS
  export GATE_BEGUN GATE_EXPECTED_S GATE_AFTER_S
  tier=$1 steps=("${@:2}") step_index=-1
  times=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/test-times-$tier
  declare -gA step_times=()
  while read -r name seconds; do
    [[ ! $seconds =~ ^[0-9]+$ ]] || step_times[$name]=$seconds
  done < <([[ -z $tier ]] || cat "$times" 2>/dev/null)
}

# Prints the expected seconds of a step. Usage: expected_s STEP
expected_s() {
  local minutes=${USUAL_MINUTES[$tier:$1]:-${USUAL_MINUTES[$1]:-0}}
  echo "${step_times[$1]:-$((minutes * 60))}"
}

# Ends the previous step, announces the next one, and prints the estimated time
# of the rest.
# Usage: begin_step STEP; in the order of plan_steps
begin_step() {
  local rest line
  end_step
  GATE_EXPECTED_S='' GATE_AFTER_S='' step_begin=$(now_ms) step_name=$1
  while [[ ${steps[++step_index]} != "$1" ]]; do :; done
  line="== $((step_index + 1))/${#steps[@]} $1:"
  line+=" $(duration $((EPOCHSECONDS - GATE_BEGUN))) so far"
  if [[ -n $tier ]]; then
    GATE_EXPECTED_S=$(expected_s "$1") GATE_AFTER_S=0
    for rest in "${steps[@]:step_index+1}"; do
      ((GATE_AFTER_S += $(expected_s "$rest"))) || true
    done
    line+=", about $(duration $((GATE_EXPECTED_S + GATE_AFTER_S))) to go"
  fi
  printf '\n%s\n' "$line"
}

end_step() {
  [[ -n ${step_name:-} ]] || return 0
  note_time step "$step_name" "$step_begin"
  step_times[$step_name]=$((($(now_ms) - step_begin) / 1000))
  step_name=''
}

# Ends the run, and keeps its durations if there is a place for them.
end_steps() {
  local name
  end_step
  [[ -n $tier ]] || return 0
  for name in "${!step_times[@]}"; do
    echo "$name ${step_times[$name]}"
  done >"$GATE_FOLDER/kept"
  # Renames the file, so that a concurrent run never reads a part.
  { mkdir -p "$(dirname "$times")" && cp "$GATE_FOLDER/kept" "$times.$$" &&
    mv "$times.$$" "$times"; } 2>/dev/null || true
}
