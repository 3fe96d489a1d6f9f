#!/usr/bin/env bash
# --event-log of dlock acquire: with --while, the process that keeps the lock writes the last event, and if it is killed
# the second one does; with --ttl nobody sees the end.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"
need pgrep

# A script that holds the locks until ./end is there, or until it is ended.
cat >script <<'SH'
#!/bin/bash
lock=$("$DLOCK" acquire -q "$@" --while $$ --export) || exit
eval "$lock"
echo $$ >script.pid
exec 9<> <(:)
until [[ -e end ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x script
begin() {
  rm -f log script.pid end
  ./script "$@" 2>script.err &
  wait_until 30 test -s script.pid
}
keeper() { pgrep -f "^lock keeper$1 for pid $(<script.pid)\$"; }
has_ended() { [[ $(grep -c '"outcome"' log || true) == "${1:-1}" ]]; }
last() { jq -r '[.event, .outcome, .exit_status, .reason] | join(" ")' log | tail -n 1; }

begin -k job
assert_equal "acquired $(<script.pid) script" "$(events '.event, .pid, .command')"
touch end
wait_until 30 has_ended
check_log log
assert_equal "released completed  " "$(last)"

# Given back one by one, before the script ends.
cat >script-release <<'SH'
#!/bin/bash
lock=$("$DLOCK" acquire -q -k a -k b --while $$ --export) || exit
eval "$lock"
"$DLOCK" release -q -k a
for ((i = 0; i < 1000; ++i)); do grep -q released log && touch released.a && break; sleep 0.02; done
SH
rm -f log
bash ./script-release
[[ -e released.a ]] || fail "release writes no last event of its lock"
wait_until 30 has_ended 2
check_log log
assert_equal $'a acquired\nb acquired\na released\nb released' "$(events '.key, .event')"

# Lost.
begin -k job --kill-after 0.5
rm "$locks/job"
wait_until 30 has_ended
check_log log
assert_equal $'acquired\nending\nlost' "$(events .event)"
assert_contains "$(last)" "lost lost  "

# Killed, one or the other; the script is ended.
for which in "" " 2"; do
  begin -k job --kill-after 0.5
  kill -KILL "$(keeper "$which")"
  wait_until 30 has_ended
  DLOCK_EVENT_LOG='' wait_until 30 is_free job
  check_log log
  assert_equal killed "$(jq -r 'select(.event == "ending").why' log)"
  assert_contains "$(last)" "   killed"
done

# Busy, and a stdout that takes nothing.
# shellcheck disable=SC2119  # no arguments
DLOCK_EVENT_LOG='' hold
rm -f log
expect_status 75 "$DLOCK" acquire -q -n -k job --while $$ >out
check_log log
assert_equal "gave-up busy 75" "$(events '.event, .outcome, .exit_status')"
release
rm log
expect_status 1 "$DLOCK" acquire -q -k job --while $$ >/dev/full 2>err
wait_until 30 has_ended
check_log log
assert_equal "released error 1 " "$(last)"

# --ttl.
start_redis server
export DLOCK_BACKEND=${redis_url[server]}
logs "$DLOCK" acquire -q -k job --ttl 5m >token
assert_equal "acquired 300000" "$(events '.event, .lease_ms')"
assert_lacks "$(<log)" "$(cut -c 1-12 token)" "the lock id"
logs expect_status 75 "$DLOCK" acquire -q -k job -n --ttl 5m
assert_equal "gave-up 300000" "$(events '.event, .holder.lease_ms')"
