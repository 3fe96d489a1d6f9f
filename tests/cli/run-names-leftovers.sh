#!/usr/bin/env bash
# Processes that a command leaves running when it ends by itself: by default they live on without
# the lock and dlock names them; --leftovers wait waits for them, --leftovers kill ends them first.
. "$(dirname "$0")/lib.sh"

cd "$tmp"

cat >daemon.sh <<'SH'
trap 'echo TERM >>heard; exit' TERM
echo $$ >"$1"
until [[ -e go ]]; do sleep 0.02; done
SH
cat >deaf.sh <<'SH'
trap '' TERM
echo $$ >"$1"
until [[ -e go ]]; do sleep 0.02; done
SH
# Starts a child and a daemon that has forked twice and has a session of its own, and ends.
cat >job.sh <<'SH'
bash "$1" child </dev/null >/dev/null 2>&1 &
(setsid bash "$1" daemon </dev/null >/dev/null 2>&1 &)
until [[ -s child && -s daemon ]]; do sleep 0.02; done
exit 5
SH
# The processes are not the script's own children, so lib.sh would not end them.
at_exit() { touch "$tmp/go"; }

again() {
  touch go
  wait_until 30 gone "$(<child)" "$(<daemon)"
  rm -f go child daemon heard err
}

# ignore, the default.
for option in '' --leftovers=ignore; do
  # shellcheck disable=SC2086  # no argument if empty
  try 5 -k job $option -- bash job.sh daemon.sh
  assert_free job
  if gone "$(<child)" || gone "$(<daemon)"; then fail "dlock ended what it was to ignore"; fi
  said=$(<err)
  assert_equal 1 "$(wc -l <err)" "lines on stderr"
  assert_contains "$said" "dlock: bash has ended; still running without the lock: "
  assert_contains "$said" "bash (pid $(<child))" "the warning about a child that is left"
  assert_contains "$said" "bash (pid $(<daemon))" "the warning about a daemon that is left"
  assert_contains "$said" "--leftovers"
  [[ ! -e heard ]] || fail "a process that was to be ignored got SIGTERM"
  again
done
try 5 -q -k job -- bash job.sh daemon.sh
assert_equal '' "$(<err)" "stderr of dlock run -q that leaves processes running"
again
try 0 -k job -- true
assert_equal '' "$(<err)" "stderr of a command that leaves nothing running"

# wait.
"$DLOCK" run -k job --leftovers wait -- bash job.sh daemon.sh 2>err &
dlock=$!
wait_until 30 test -s child -a -s daemon
assert_held job
kill -TERM "$(<child)"
wait_until 30 gone "$(<child)"
assert_held job # for the daemon's sake
gone "$dlock" && fail "--leftovers wait did not wait for a daemon"
touch go
got=0
wait "$dlock" || got=$?
assert_equal 5 "$got" "exit status with --leftovers wait"
gone "$(<daemon)" || fail "--leftovers wait ended before the daemon"
assert_equal '' "$(<err)" "stderr with --leftovers wait"
assert_free job
again

# kill: SIGTERM first.
try 5 -k job --leftovers kill -- bash job.sh daemon.sh
gone "$(<child)" "$(<daemon)" || fail "--leftovers kill left a process running"
assert_equal $'TERM\nTERM' "$(<heard)" "what the leftovers heard before they were killed"
assert_equal '' "$(<err)" "stderr with --leftovers kill"
assert_free job
again

# kill: SIGKILL after --kill-after, and the lock is held until then.
"$DLOCK" run -k job --leftovers kill --kill-after 2 -- bash job.sh deaf.sh 2>err &
dlock=$!
wait_until 30 test -s child -a -s daemon
# shellcheck disable=SC2016  # for the inner shell
expect_status 0 "$DLOCK" run -q -k job -w 60 -- bash -c '[[ ! -e /proc/$0 && ! -e /proc/$1 ]]' \
  "$(<child)" "$(<daemon)"
got=0
wait "$dlock" || got=$?
assert_equal 5 "$got" "exit status with --leftovers kill and leftovers that ignore SIGTERM"
gone "$(<child)" "$(<daemon)" || fail "--leftovers kill left a deaf process running"
assert_free job
