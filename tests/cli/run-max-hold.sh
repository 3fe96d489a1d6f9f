#!/usr/bin/env bash
# --max-hold ends a command that runs too long: SIGTERM, SIGKILL after --kill-after, status 124, and
# the lock is free.  It does not touch a command that ends in time, nor does waiting count.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

try 124 -k job --max-hold 0.3 -- sleep 300
assert_equal 'dlock: --max-hold 300ms is over; ending sleep' "$(<err)" "stderr"
assert_free job

# SIGTERM comes first, to all of the tree, and a status of the command's own does not count.
cat >job.sh <<'SH'
exec 2>/dev/null
trap 'echo "$1" >>heard; exit 5' TERM
[[ $1 == child ]] || bash job.sh child &
echo $$ >"$1"
while :; do sleep 0.02; done
SH
try 124 -q -k job --max-hold 2 -- bash job.sh parent
assert_equal $'child\nparent' "$(sort heard)" "who got SIGTERM when --max-hold was over"
gone "$(<parent)" "$(<child)" || fail "OUTLIVED: a process of the job is left when --max-hold has ended it"
assert_equal '' "$(<err)" "stderr of dlock run -q --max-hold"
assert_free job

# SIGKILL for what does not listen.
sed -i "s/trap .*/trap '' TERM/" job.sh
rm -f parent child
expect_status 124 "$DLOCK" run -q -k job --max-hold 2 --kill-after 0.3 -- bash job.sh parent
gone "$(<parent)" "$(<child)" || fail "a deaf process is left when --max-hold has ended the job"
assert_free job

# A command that is stopped hears of it too.
# shellcheck disable=SC2016  # for the inner shell
expect_status 124 "$DLOCK" run -q -k job --max-hold 1 -- sh -c 'kill -STOP $$'
assert_free job

# In time; and 0 is no limit.
try 7 -k job --max-hold 60 -- sh -c 'exit 7'
assert_equal '' "$(<err)" "stderr of a command that ends in time"
try 7 -k job --max-hold 0 -- sh -c 'sleep 0.3; exit 7'
assert_equal '' "$(<err)" "stderr of a command with --max-hold 0"

# A command that goes on after a loss is ended, too.
"$DLOCK" run -q -k job --on-lost ignore --max-hold 3 -- sh -c 'touch has-lock; exec sleep 20' 2>err &
holder=$!
wait_until 30 test -e has-lock
begun=$(now_ms)
"$DLOCK" force-release --yes job >/dev/null
wait_until 30 grep -q 'goes on without the lock' err
wait "$holder" || true
(($(now_ms) - begun < 15000)) || fail "--max-hold does not end a command that has lost its lock"

# The wait for the lock does not count.
"$DLOCK" run -k job -- sh -c 'touch held; until test -e go; do sleep 0.02; done' &
holder=$!
wait_until 30 test -e held
"$DLOCK" run -q -k job --max-hold 2 -- sh -c 'touch ran; exit 3' &
waiter=$!
sleep 2.5  # longer than --max-hold
[[ ! -e ran ]] || fail "OVERLAP: a command ran while another one held the lock"
touch go
wait "$holder"
got=0
wait "$waiter" || got=$?
assert_equal 3 "$got" "exit status with a --max-hold that is shorter than the wait for the lock was"
