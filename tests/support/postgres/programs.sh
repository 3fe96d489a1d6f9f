# shellcheck shell=bash
# Sourced by the scripts here.  $postgres_bin is where the server's programs are; empty: it is not installed.
postgres_bin=${TEST_POSTGRES_BIN-}
if [[ -z $postgres_bin ]]; then
  for lib_bin in /usr/lib/postgresql/*/bin; do
    [[ ! -x $lib_bin/initdb ]] || postgres_bin=$lib_bin
  done
fi

# "${as_postgres[@]}" PROGRAM ARGUMENTS...: not as root, which the server refuses.  It ends with this script.
as_postgres=(setpriv --pdeathsig KILL)
((EUID != 0)) || as_postgres+=(--reuid=postgres --regid=postgres --clear-groups)

# open_for_postgres DIRECTORY: the server may put files there.
open_for_postgres() {
  ((EUID == 0)) || return 0
  chown postgres: "$1"
  chmod 0755 "$1"
}
