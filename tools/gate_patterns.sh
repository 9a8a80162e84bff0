# Which targets tools/test is about. Source it after lib.sh.
# shellcheck shell=bash
# shellcheck disable=SC2154  # variables of tools/test and of lib.sh

# Prints //FOLDER/... for each of the folders that holds a package, since Bazel
# takes one without for an error.
patterns_in() {
  local folder
  for folder; do
    [[ -z $(find "$root/$folder" -name BUILD -print -quit 2>/dev/null) ]] ||
      echo "//$folder/..."
  done
}

# Not //..., which would walk into the bazel-* links of another output folder.
all_patterns() {
  local folders
  mapfile -t folders < <(find "$root" -mindepth 1 -maxdepth 1 -type d \
    -not -name '.*' -printf '%f\n' | sort)
  patterns_in "${folders[@]}"
}

# Prints the patterns, with all tests where there is none to begin with.
# Usage: complete_patterns [PATTERN...]
complete_patterns() {
  case ${1:-} in
    '' | -*) all_patterns ;;
  esac
  (($# == 0)) || printf '%s\n' "$@"
}

# Bazel's patterns as an expression of its query language.
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
