# Lists the releases of TensorFlow for which the plugin is built and tested, and
# their folders. Source it, do not run it.
# shellcheck shell=bash

# The releases: the last patch of each minor release, oldest first.
# docs/tensorflow.md has the results of each.
readonly TENSORFLOW_RELEASES=(2.15.1 2.16.2 2.17.1 2.18.1 2.19.1 2.20.0 2.21.0)
readonly OLDEST_TENSORFLOW=${TENSORFLOW_RELEASES[0]}
readonly NEWEST_TENSORFLOW=${TENSORFLOW_RELEASES[-1]}

# Prints the full release for a number, or for its first two parts.
# Usage: find_tensorflow RELEASE
find_tensorflow() {
  local release
  for release in "${TENSORFLOW_RELEASES[@]}"; do
    [[ $1 != "$release" && $1 != "${release%.*}" ]] || { echo "$release"; return; }
  done
  echo "${0##*/}: no TensorFlow $1; there are ${TENSORFLOW_RELEASES[*]}" >&2
  return 1
}

# Prints the virtual environment that tools/setup makes for a release. The
# newest release has the place where the build looks by default.
# Usage: tensorflow_home RELEASE
tensorflow_home() {
  local home=${XDG_CACHE_HOME:-$HOME/.cache}/penstock/tensorflow
  [[ $1 == "$NEWEST_TENSORFLOW" ]] || home+=-${1%.*}
  echo "$home"
}
