# Finds the targets of a run of tools/test. Source it after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of tools/test and of lib.sh

# Prints //FOLDER/... for each of the folders that contains a package. Bazel
# rejects a folder without one.
patterns_in() {
  local folder
  for folder; do
    [[ -z $(find "$root/$folder" -name BUILD -print -quit 2>/dev/null) ]] ||
      echo "//$folder/..."
  done
}

# Prints patterns for all tests, but not //..., which would include the bazel-*
# links of another output folder.
all_patterns() {
  local folders
  mapfile -t folders < <(find "$root" -mindepth 1 -maxdepth 1 -type d \
    -not -name '.*' -printf '%f\n' | sort)
  patterns_in "${folders[@]}"
}

# Prints the patterns. If none is positive, adds all tests.
# Usage: complete_patterns [PATTERN...]
complete_patterns() {
  case ${1:-} in
    '' | -*) all_patterns ;;
  esac
  (($# == 0)) || printf '%s\n' "$@"
}

# Prints Bazel's patterns as an expression of its query language.
# Usage: query_of PATTERN...
query_of() {
  local pattern wanted='' without=''
  for pattern; do
    case $pattern in
      -*) without+=" '${pattern#-}'" ;;
      *) wanted+=" '$pattern'" ;;
    esac
  done
  echo "set($wanted)${without:+ except set($without)}"
}
