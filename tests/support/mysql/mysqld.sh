#!/usr/bin/env bash
# mysqld.sh ARGUMENTS...: becomes MySQL's server in the directory TEST_MYSQL_ROOT (tests/with-mysql.sh).
# Its libc is newer than this machine's, so it is run by the dynamic loader that belongs to that.
set -euo pipefail
usr=$TEST_MYSQL_ROOT/usr
loader=("$usr"/lib/*/ld-linux*)
exec "${loader[0]}" --library-path "${loader[0]%/*}" "$usr/sbin/mysqld" "$@" \
  --basedir="$usr" --lc-messages-dir="$usr/share/mysql" --character-sets-dir="$usr/share/mysql/charsets" \
  --plugin-dir="$usr/lib/mysql/plugin"
