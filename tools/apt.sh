# Shared by the scripts beside it; source it, do not run it.
# shellcheck shell=bash

readonly DEBIAN_MIRROR=${PENSTOCK_DEBIAN_MIRROR:-http://deb.debian.org}
readonly DEBIAN_KEYRING=/usr/share/keyrings/debian-archive-keyring.gpg

# Makes HOME_DIR ready for private_apt. TYPE is deb or deb-src.
# Usage: private_apt_init HOME_DIR TYPE [--security]
private_apt_init() {
  local suite source
  source="$2 [signed-by=$DEBIAN_KEYRING] $DEBIAN_MIRROR"
  mkdir -p "$1"/{lists,cache/archives}/partial
  for suite in bookworm bookworm-updates; do
    echo "$source/debian $suite main"
  done >"$1/sources.list"
  # A security update lies in an archive of its own until the next release.
  if [[ ${3:-} == --security ]]; then
    echo "$source/debian-security bookworm-security main" \
      >>"$1/sources.list"
  fi
}

# apt-get with lists, sources and cache of its own, so that the machine's apt
# settings stay as they are and no root is needed. It checks the archive's
# signature and each file's hash.
# Usage: private_apt HOME_DIR ARGUMENT...
private_apt() {
  apt-get -q -o Dir::Etc::sourcelist="$1/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" \
    -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "${@:2}"
}
