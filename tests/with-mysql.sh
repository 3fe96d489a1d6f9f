#!/usr/bin/env bash
# Runs a command of which the tests of MySQL start MySQL's own server in MariaDB's place.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/with-mysql.sh COMMAND [ARGUMENTS...]
       e.g. tests/with-mysql.sh build/default/tests/contract/dlock-one-backend-tests \
              --gtest_filter='*mysql*:*Mysql*-*Galera*'

Runs COMMAND with MySQL's server of Debian unstable, of which it finds the directory in TEST_MYSQL_ROOT.
Nothing is installed: the server and all libraries that it needs, libc among them, are unpacked into
${XDG_CACHE_HOME:-~/.cache}/dlock/mysql. Remove that directory to fetch the server of today.
The packages come from the mirror that apt uses on this machine; set MIRROR to use another one. If they
cannot be had, or MariaDB's client is not installed, COMMAND is not run, and the status is 77.
TEXT
}

source_dir=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd -P)
# shellcheck source=cmake/packages.sh
. "$source_dir/cmake/packages.sh"

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
if ! command -v mariadb >/dev/null; then
  note "mariadb-client is not installed"
  exit 77
fi
root=${XDG_CACHE_HOME:-$HOME/.cache}/dlock/mysql
new=$root.new

# unpack_mysql: puts the server into $new/root; 1 if it cannot be had.  This apt knows of nothing that
# is installed, so it fetches what every package depends on, too.
unpack_mysql() {
  local mirror keys=/usr/share/keyrings/debian-archive-keyring.gpg option options=() package
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
  apt-get -q -y "${options[@]}" install --download-only --no-install-recommends \
    mysql-server-core || return
  for package in "$new"/cache/archives/*.deb; do
    dpkg-deb -x "$package" "$new/root" || return
  done
  [[ -x $new/root/usr/sbin/mysqld ]]
}

if [[ ! -d $root ]]; then
  mkdir -p "${root%/*}"
  exec 9>"$root.lock" # one fetches it, the others wait
  flock 9
  if [[ ! -d $root ]]; then
    rm -rf -- "$new" # of one that was killed
    mkdir "$new"
    note "fetching MySQL's server"
    if ! unpack_mysql >"$new/output" 2>&1; then
      note "MySQL's server cannot be had:" \
        "$(sed -n 's/^E: //p' "$new/output" | head -n 1 | grep . || echo 'apt has no mirror of Debian')"
      rm -rf -- "$new"
      exit 77
    fi
    mv -- "$new/root" "$root"
    rm -rf -- "$new"
  fi
  exec 9>&-
fi
# What ctest made for the other tests is of MariaDB.
unset TEST_MYSQL_DATA
# To log in with TLS, MariaDB's client library reads all CAs that the system trusts: 20 ms each time, which is
# too long for tests that log in hundreds of times at once.
export SSL_CERT_FILE=/dev/null TEST_MYSQL_ROOT=$root
exec "$@"
