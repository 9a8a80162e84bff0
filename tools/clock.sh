# Shows that time passes while a slow command is silent. Source it, do not run
# it.
# shellcheck shell=bash

# The period of the lines in seconds, if standard error is not a terminal.
readonly CLOCK_PERIOD_S=10

# Prints the last line of a log, cut to the width of the terminal.
last_line() {
  tail -c 400 "$1" 2>/dev/null | tr -d '\r' | sed '/^ *$/d' | tail -n 1 |
    cut -c 1-70
}

# Usage: show_clock TEXT LOG SECONDS
show_clock() {
  local line said=''
  [[ -z $2 ]] || said=$(last_line "$2")
  printf -v line '%s, %d:%02d%s' "$1" $(($3 / 60)) $(($3 % 60)) \
    "${said:+: $said}"
  if [[ -t 2 ]]; then
    # Moves the cursor back, so that the next line of any program overwrites
    # this one.
    printf '\033[K%s\r' "${line:0:$(($(tput cols 2>/dev/null || echo 80) - 1))}"
  elif (($3 % CLOCK_PERIOD_S == 0)); then
    printf '%s\n' "$line"
  fi >&2
}

# Shows the clock each second until standard input ends.
# Usage: run_clock TEXT LOG
run_clock() {
  local seconds=0 status=0
  while read -rt 1 || status=$?; ((status > 128)); do
    show_clock "$1" "$2" $((++seconds))
  done
}

# Runs a command. Meanwhile shows TEXT, the time, and the last line of LOG, to
# which the command writes; LOG may be empty. Shows nothing for fast commands.
# Do not nest.
# Usage: with_clock TEXT LOG COMMAND [ARGUMENT...]
with_clock() {
  local status=0
  # Starts the clock with a pipe, and it ends when this shell closes the pipe or
  # ends. No signal is sent, because an early signal would make the clock run
  # this shell's traps.
  exec 8> >(exec 9>&-; run_clock "$1" "$2")
  "${@:3}" 8>&- || status=$?
  exec 8>&-
  wait "$!" 2>/dev/null || true
  [[ ! -t 2 ]] || printf '\033[K' >&2
  return "$status"
}
