#!/usr/bin/env bash
# Runs a command of which the tests of PostgreSQL start a newer server.
set -euo pipefail

usage() {
  cat <<'TEXT'
Usage: tests/with-postgres.sh COMMAND [ARGUMENTS...]
       e.g. tests/with-postgres.sh build/default/tests/contract/dlock-every-backend-tests \
              --gtest_filter='*/postgres_*'

Runs COMMAND with PostgreSQL of Debian unstable, of which it finds the programs in TEST_POSTGRES_BIN.
Nothing is installed: tests/unpack_server.sh says where it is; remove that to fetch the server of today.
If it cannot be had, or psql is not installed, COMMAND is not run, and the status is 77.
TEXT
}

# shellcheck source=tests/unpack_server.sh
. "$(dirname "${BASH_SOURCE[0]}")/unpack_server.sh"
needs psql postgresql-client
version=18
unpack_server postgres "postgresql-$version" "usr/lib/postgresql/$version/bin/postgres"

# Their libc is newer than this machine's, so they are run by the dynamic loader that belongs to that.  They look for
# the others, and for their files, where they are.  The server does not run as root.
bin=$server_root/usr/lib/postgresql/$version/bin
for program in initdb postgres pg_basebackup; do
  [[ ! -e $bin/$program.real ]] || continue
  cp -- "$bin/$program" "$bin/$program.real"
  cat >"$bin/$program.new" <<'PROGRAM'
#!/usr/bin/env bash
loader=("${0%/*}"/../../../*/ld-linux*)
exec "${loader[0]}" --library-path "${loader[0]%/*}" --argv0 "$0" "$0.real" "$@"
PROGRAM
  chmod 0755 "$bin/$program.new"
  mv -- "$bin/$program.new" "$bin/$program"
done
data=$(mktemp -d)
trap 'rm -rf -- "$data"' EXIT
chmod 0755 "$data"
export TEST_POSTGRES_BIN=$bin TEST_POSTGRES_DATA=$data/data
bash "$source_dir/tests/support/postgres/install.sh" "$TEST_POSTGRES_DATA"
"$@"
