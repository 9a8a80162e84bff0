# Shows that time passes while a slow command is silent. Source it, do not run it.
# shellcheck shell=bash

# How often a line appears if standard error is no terminal, in seconds.
readonly CLOCK_PERIOD_S=10

# Prints the last line of a log, cut to what fits a line of the clock.
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
    # The next line of anybody overwrites this one.
    printf '\033[K%s\r' "${line:0:$(($(tput cols 2>/dev/null || echo 80) - 1))}"
  elif (($3 % CLOCK_PERIOD_S == 0)); then
    printf '%s\n' "$line"
  fi >&2
}

# Shows the clock each second until process PARENT is gone.
# Usage: run_clock TEXT LOG PARENT
run_clock() {
  local silence seconds=0
  exec {silence}<> <(:)
  while kill -0 "$3" 2>/dev/null; do
    # Like sleep, without a process that could stay behind.
    read -rt 1 -u "$silence" || true
    show_clock "$1" "$2" $((++seconds))
  done
}

# Runs a command. Meanwhile shows TEXT, the time, and the last line of LOG, to
# which the command writes; LOG may be empty. Says nothing about fast commands.
# Usage: with_clock TEXT LOG COMMAND [ARGUMENT...]
with_clock() {
  local status=0 clock
  run_clock "$1" "$2" "$BASHPID" 9>&- &
  clock=$!
  "${@:3}" || status=$?
  kill "$clock" 2>/dev/null || true
  wait "$clock" 2>/dev/null || true
  [[ ! -t 2 ]] || printf '\033[K' >&2
  return "$status"
}
