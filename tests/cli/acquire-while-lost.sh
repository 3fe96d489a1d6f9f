#!/usr/bin/env bash
# ctest: every kind of backend
# acquire --while PID: if the lock is lost, PID and what is below it are ended, as --on-lost says.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND DLOCK_TTL=3s

cat >script <<'SH'
#!/bin/bash
lock=$("$DLOCK" acquire -k job --while $$ "$@" --export) || exit
eval "$lock"
trap 'touch term; exit 9' TERM
exec 9<> <(:)
touch ready
until [[ -e end ]]; do read -rt 0.02 -u 9 || :; done
SH
chmod +x script
break_lock() { "$DLOCK" force-release -q --yes --reason "disk is full" job; }

start_script ./script
break_lock
ends 9 script
[[ -e term ]] || fail "no SIGTERM"
wait_until 30 grep -q 'lost "job".*disk is full; ending script' script.err

start_script ./script --on-lost kill
break_lock
ends 137 script
[[ ! -e term ]] || fail "SIGTERM came with --on-lost kill"

# It goes on; its end is its own.
start_script ./script --on-lost ignore
break_lock &
breaking=$!
wait_until 30 grep -q 'goes on without the lock' script.err
touch end
ends 0 script
wait "$breaking"
assert_free job

# Its shell ends at once, and a child of it does not: that is killed after --kill-after.
cat >slow <<'SH'
#!/bin/bash
lock=$(DLOCK_TTL=30s "$DLOCK" acquire -k job --while $$ --kill-after 7 --export) || exit
bash -c 'trap "" TERM; exec 9<> <(:); echo $$ >child.pid; touch ready; read -rt 600 -u 9' &
exec 9<> <(:)
read -rt 600 -u 9
SH
chmod +x slow
start_script ./slow
break_lock &
breaking=$!
ends 143 script
wait_until 60 gone "$(<child.pid)"
wait "$breaking"
assert_free job
