# Runs apt-get without touching the machine's settings, for the scripts of this
# folder. Source it, do not run it.
# shellcheck shell=bash

readonly DEBIAN_MIRROR=${PENSTOCK_DEBIAN_MIRROR:-http://deb.debian.org}
readonly UBUNTU_MIRROR=${PENSTOCK_UBUNTU_MIRROR:-http://archive.ubuntu.com}

# Prints a value of /etc/os-release, or nothing.
# Usage: os_release NAME
os_release() {
  # shellcheck source=/dev/null
  (unset "$1" && . /etc/os-release && echo "${!1:-}")
}

# Makes HOME_DIR ready for private_apt, with the archive of the distribution
# that this runs on. TYPE is deb or deb-src.
# Usage: private_apt_init HOME_DIR TYPE [--security]
private_apt_init() {
  local id suite archive security components=main
  id=$(os_release ID) suite=$(os_release VERSION_CODENAME)
  case $id in
    ubuntu)
      archive=$UBUNTU_MIRROR/ubuntu security=$UBUNTU_MIRROR/ubuntu
      components='main universe'
      ;;
    *) archive=$DEBIAN_MIRROR/debian security=$DEBIAN_MIRROR/debian-security ;;
  esac
  mkdir -p "$1"/{lists,cache/archives}/partial
  # Lists the separate archive of security updates, too, which has them until
  # the next release.
  {
    echo "$archive $suite $components"
    echo "$archive $suite-updates $components"
    [[ ${3:-} != --security ]] || echo "$security $suite-security $components"
  } | sed "s|^|$2 [signed-by=/usr/share/keyrings/$id-archive-keyring.gpg] |" \
    >"$1/sources.list"
}

# Runs apt-get with its own lists, sources and cache. The machine's apt settings
# stay unchanged, and no root is needed. apt checks the archive's signature and
# each file's hash.
# Usage: private_apt HOME_DIR ARGUMENT...
private_apt() {
  apt-get -q -o Dir::Etc::sourcelist="$1/sources.list" \
    -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::Lists="$1/lists" -o Dir::Cache="$1/cache" \
    -o APT::Sandbox::User=root -o APT::Update::Error-Mode=any "${@:2}"
}
