#!/usr/bin/env bash
# A signal that is sent to dlock while the command runs arrives at the command, exactly; those that
# ask to end arrive at all that the command has started.  What has not ended when the command has,
# after such a signal, is ended before the lock is free.
. "$(dirname "$0")/lib.sh"

need python3
cd "$tmp"

# start ARGUMENTS...: dlock run in the background, with nothing ignored as it is for background jobs.
start() {
  env --default-signal "$DLOCK" run "$@" &
  dlock=$!
}
# ends STATUS WHAT: dlock ends, and with this status.
ends() {
  local got=0
  wait "$dlock" || got=$?
  assert_equal "$1" "$got" "$2"
}
has_lines() { [[ -e $2 ]] && (($(wc -l <"$2") >= $1)); }

# Every one that can be caught, once each and in order.  (SIGCHLD is for parents; the stop signals
# stop dlock too, as the terminal's would.)
cat >catch.py <<'PY'
import signal
everything = signal.valid_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, everything)
print('ready', flush=True)
while True:
    number = signal.sigwaitinfo(everything).si_signo
    print(number, flush=True)
    if number == signal.SIGRTMAX:
        raise SystemExit(9)
PY
rtmin=$(kill -l RTMIN) rtmax=$(kill -l RTMAX)
start -k job -- python3 catch.py >caught
wait_until 60 has_lines 1 caught
sent=ready count=1
for signal in {1..31} "$rtmin" $((rtmin + 5)) "$rtmax"; do
  case $(kill -l "$signal") in KILL | STOP | CHLD | TSTP | TTIN | TTOU) continue ;; esac
  kill -"$signal" "$dlock"
  sent+=$'\n'$signal
  count=$((count + 1))
  wait_until 30 has_lines "$count" caught
  assert_equal "$sent" "$(<caught)" "signals that the command got, after $signal was sent"
done
ends 9 "exit status of a command that caught every signal"
((count == 29)) || fail "$count signals were sent, not 28"

# TERM, INT, HUP and QUIT: the whole tree.  The shell dies of it; its child, which is the job, has
# heard of it too.
# (A worker in Python: a shell that has two traps to run, one for what was sent and one for the
# SIGTERM that follows when the shell above it is dead, begins with either.)
cat >worker.py <<'PY'
import os, signal
everything = signal.valid_signals()
signal.pthread_sigmask(signal.SIG_BLOCK, everything)
with open('worker', 'w') as file:
    print(os.getpid(), file=file)
number = signal.sigwaitinfo(everything).si_signo
with open('heard', 'a') as file:
    print(signal.Signals(number).name, file=file)
PY
for signal in TERM INT HUP QUIT; do
  rm -f worker heard
  start -k job -- sh -c 'ulimit -c 0; exec 2>/dev/null; env --default-signal python3 worker.py & wait'
  wait_until 30 has_lines 1 worker
  kill -"$signal" "$dlock"
  ends $((128 + $(kill -l "$signal"))) "exit status after SIG$signal, of which the shell died"
  gone "$(<worker)" || fail "after SIG$signal the worker below the shell still runs"
  assert_equal "SIG$signal" "$(<heard)" "what the worker below the shell heard"
  assert_free job
done

# Other signals: the command alone.
rm -f worker heard
start -q -k job -- bash -c 'trap "echo command >>heard; kill %1; wait; exit 5" USR1; python3 worker.py & wait'
wait_until 30 has_lines 1 worker
kill -USR1 "$dlock"
ends 5 "exit status of a command that ends at SIGUSR1"
assert_equal $'command\nSIGTERM' "$(<heard)" "what the command and then its child heard"

# A command that takes its time over SIGTERM gets it.  The lock stays held, and a second SIGTERM
# arrives as well.
rm -f heard
# shellcheck disable=SC2016  # for the inner shell
start -k job -- bash -c 'exec 2>/dev/null; trap "echo x >>heard" TERM; touch ready
  until (($(cat heard 2>/dev/null | wc -l) >= 2)) && [[ -e go ]]; do sleep 0.02; done; exit 33'
wait_until 30 test -e ready
kill -TERM "$dlock"
wait_until 30 has_lines 1 heard
assert_held job
kill -TERM "$dlock"
wait_until 30 has_lines 2 heard
assert_held job
assert_equal 2 "$(wc -l <heard)" "how often two SIGTERMs arrive"
touch go
ends 33 "exit status of a command that cleans up after SIGTERM"
assert_free job

# What outlives a signalled end ends before the lock is free.
rm -f worker
cat >deaf.sh <<'SH'
exec 2>/dev/null
trap '' TERM
echo $$ >worker
while :; do sleep 0.02; done
SH
start -k job --kill-after 3 -- sh -c 'setsid bash deaf.sh & echo $$ >shell; wait'
wait_until 30 has_lines 1 worker
wait_until 30 has_lines 1 shell
worker=$(<worker)
# shellcheck disable=SC2016  # for the inner shell
"$DLOCK" run -q -k job -w 60 -- bash -c '[[ ! -e /proc/$0 ]]' "$worker" &
next=$!
kill -TERM "$dlock"
wait_until 30 gone "$(<shell)"
assert_held job
if gone "$worker"; then fail "a grandchild that ignores SIGTERM did not get --kill-after"; fi
ends 143 "exit status of a command that died of SIGTERM and left a deaf grandchild"
gone "$worker" || fail "OUTLIVED: a grandchild that ignores SIGTERM lives on when dlock has ended"
wait "$next" || fail "OVERLAP: the next holder ran while a process of the last one was left"

# A SIGTERM that the supervisor gets, the parent of the command, is one that dlock gets.
expect_status 143 "$DLOCK" run -q -k job -- sh -c 'kill $PPID; exec sleep 1000'
cat >catch-once.sh <<'SH'
trap 'echo TERM >>caught-once; exit 34' TERM
echo ready >ready
while :; do sleep 0.02; done
SH
start -k job -- bash catch-once.sh
wait_until 30 has_lines 1 ready
pkill -TERM -P "$dlock"
ends 34 "exit status of a command that catches the SIGTERM sent to the supervisor"
assert_equal TERM "$(<caught-once)" "what the command got"
"$DLOCK" run -k job -- sleep 1000 &
holder=$!
wait_until 30 is_held job
start -q -k job -- touch not-started
waiter=$dlock
wait_until 30 pgrep -P "$waiter"
pkill -TERM -P "$waiter"
ends 143 "exit status of a waiter whose supervisor got SIGTERM"
[[ ! -e not-started ]] || fail "the command of a waiter that got SIGTERM has run"
kill "$holder"
