#!/usr/bin/env bash
# A command inherits the settings of dlock, so that a nested run finds the same server, also with a password in them.
# With the password in a file or in a profile, it is in no environment and on no command line: neither of the command
# nor of dlock's own processes nor of a script that dlock acquire keeps a lock for.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/passwords.sh"

cd "$tmp"
secret+=$$ # no other test has it
start_redis a
rcli a config set requirepass "$secret" >/dev/null
server=127.0.0.1:${redis_port[a]}
(umask 077 && echo "$secret" >file && echo "{\"backends\": {\"p\": {\"url\": \"redis://:$secret@$server\"}}}" >config.json)
unset DLOCK_BACKEND

# nested WAY VARIABLE=VALUE...: a nested run with another key finds the server; sets $seen to the environment and the
# command line of all processes from the launcher to the command.
nested() {
  local what="with the password in the $1"
  shift
  cat >look.sh <<'SH'
"$DLOCK" run -n -k inner -- echo nested
pid=$$
while [ "$pid" != "$1" ]; do
  pid=$(sed 's/.*) . \([0-9]*\) .*/\1/' "/proc/$pid/stat")
  tr '\0' '\n' <"/proc/$pid/environ"
  tr '\0' ' ' <"/proc/$pid/cmdline"
  echo
done
env
SH
  # shellcheck disable=SC2016 # the shell below it has the variable
  seen=$(env "$@" bash -c '"$DLOCK" run -k outer -- sh look.sh $$')
  assert_contains "$seen" "nested${lib_newline}" "what a nested run printed, $what"
  assert_contains "$seen" "$DLOCK run -k outer -- sh look.sh" "the command lines, $what"
  assert_contains "$seen" "DLOCK_KEY=outer" "the environment of the command, $what"
}
nested variable DLOCK_BACKEND="redis://:$secret@$server"
assert_contains "$seen" "DLOCK_BACKEND=redis://:$secret@$server" "what the command inherits"
assert_equal "DLOCK_BACKEND" "$(env | sed -n "s/=.*$secret.*//p"; sed -n "s/=.*$secret.*//p" <<<"$seen" | sort -u)" \
  "variables with a password"
nested file DLOCK_BACKEND="redis://$server" DLOCK_PASSWORD_FILE="$tmp/file"
hidden "$seen" "environments and command lines with a password file"
nested profile DLOCK_CONFIG="$tmp/config.json" DLOCK_BACKEND=p
hidden "$seen" "environments and command lines with a profile"

# Without the variable.
expect_status 0 env DLOCK_BACKEND="redis://:$secret@$server" "$DLOCK" run -k k -- env -u DLOCK_BACKEND bash -c \
  '! env | grep "$1"' bash "$secret"

# What dlock acquire prints, and its keeper.
export DLOCK_BACKEND="redis://:$secret@$server"
exported=$("$DLOCK" acquire -k script --while $$ --export)
hidden "$exported" "what dlock acquire --export prints"
assert_contains "$exported" DLOCK_TOKEN
assert_equal "" "$(grep -lsFf file /proc/[0-9]*/cmdline || true)" "processes with the password on their command line"
eval "$exported"
"$DLOCK" release -k script
