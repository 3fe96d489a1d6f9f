# shellcheck shell=bash
# Sourced by with-mysql.sh and with-postgres.sh, with their arguments, when they have usage(), which prints how they are
# used.
case ${1-} in
  -h | --help)
    usage
    exit 0
    ;;
  '' | -*)
    usage >&2
    exit 64
    ;;
esac
source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"

# needs PROGRAM PACKAGE: ends the script with status 77 if it is not installed.
needs() {
  command -v "$1" >/dev/null && return
  note "$2 is not installed"
  exit 77
}

# unpack_server NAME PACKAGE PROGRAM: sets $server_root to a directory with this package of Debian unstable, of which
# PROGRAM is a file, and all that it depends on, libc among them.  Nothing is installed: it is unpacked into
# ~/.cache/dlock/NAME, or as root, which does not run a server itself, into /var/cache/dlock/NAME, once.  The packages
# come from the mirror that apt uses on this machine, or from MIRROR.  If they cannot be had, the script ends with
# status 77.
unpack_server() {
  local name=$1 package=$2 program=$3 cache=${XDG_CACHE_HOME:-$HOME/.cache} new
  ((EUID != 0)) || cache=/var/cache
  server_root=$cache/dlock/$name
  new=$server_root.new
  [[ ! -d $server_root ]] || return 0
  mkdir -p "${server_root%/*}"
  exec 9>"$server_root.lock" # one fetches it, the others wait
  flock 9
  if [[ ! -d $server_root ]]; then
    rm -rf -- "$new" # of one that was killed
    mkdir "$new"
    note "fetching $package of Debian unstable"
    if ! unpack_packages "$new" "$package" >"$new/output" 2>&1 || [[ ! -x $new/root/$program ]]; then
      note "$package cannot be had:" \
        "$(sed -n 's/^E: //p' "$new/output" | head -n 1 | grep . || echo 'apt has no mirror of Debian')"
      rm -rf -- "$new"
      exit 77
    fi
    mv -- "$new/root" "$server_root"
    rm -rf -- "$new"
  fi
  exec 9>&-
}

# This apt knows of nothing that is installed, so it fetches what every package depends on, too.
unpack_packages() {
  local new=$1 mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg option options=() package
  mirror=${MIRROR:-$(mirror_of Debian)} || return
  [[ -n $mirror && -e $keys ]] || return
  mkdir -p "$new/state/lists/partial" "$new/cache/archives/partial" || return
  printf 'deb [signed-by=%s] %s unstable main\n' "$keys" "$mirror" >"$new/sources" || return
  : >"$new/status" || return
  for option in Dir::Etc::SourceList="$new/sources" Dir::Etc::SourceParts=/dev/null \
    Dir::Etc::Preferences=/dev/null Dir::Etc::PreferencesParts=/dev/null Dir::State="$new/state" \
    Dir::State::status="$new/status" Dir::Cache="$new/cache" Dir::Log="$new" APT::Sandbox::User=; do
    options+=(-o "$option")
  done
  apt-get -q "${options[@]}" --error-on=any update || return
  apt-get -q -y "${options[@]}" install --download-only --no-install-recommends "$2" || return
  for package in "$new"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$new/root" || return
  done
}
