#!/usr/bin/env bash
# serve.sh DIRECTORY PORT [NAME=VALUE...]: becomes a PostgreSQL server on this port of 127.0.0.1, and on a unix
# socket in DIRECTORY, with these settings.  Its data are in DIRECTORY/data: if they are not there, a copy of
# TEST_POSTGRES_DATA, or of what install.sh makes.
set -euo pipefail
files=$(dirname "${BASH_SOURCE[0]}")
. "$files/programs.sh"
[[ -n $postgres_bin ]] || exit 125
directory=$1 port=$2
shift 2
open_for_postgres "$directory"
if [[ ! -d $directory/data ]]; then
  template=${TEST_POSTGRES_DATA-}
  if [[ ! -d $template ]]; then
    template=$directory/template
    bash "$files/install.sh" "$template"
  fi
  cp -a -- "$template" "$directory/data"
fi
settings=()
for setting in "$@"; do settings+=(-c "$setting"); done
exec "${as_postgres[@]}" "$postgres_bin/postgres" -D "$directory/data" -p "$port" \
  -c listen_addresses=127.0.0.1 -c unix_socket_directories="$directory" "${settings[@]}"
