#!/usr/bin/env bash
# A MySQL server that describes columns without end costs little memory, also where dlock waits without a limit.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/endless.sh"

cd "$tmp"
start_endless mysql-columns
url="mysql://u@127.0.0.1:$port/d?tls=off"
ends_endless 69 20 'more than 64 MiB' list -b "$url" --connect-timeout 10
ends_endless 69 20 'more than 64 MiB' run -w 0 -k job -b "$url" --connect-timeout 10 -- touch ran
[[ ! -e ran ]] || fail "the command was run"
