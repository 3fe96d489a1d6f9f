#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 12
# acquire --while PID: two processes keep the lock until PID has ended.  If one of them is killed, or if it
# is stopped where that is a danger, PID and what is below it have ended before anybody else has the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND DLOCK_TTL=2s

# It has a child that ignores SIGTERM; whoever is next checks that neither is alive.
cat >script <<'SH'
#!/bin/bash
lock=$("$DLOCK" acquire -q -k job --while $$ --kill-after 0.5 --export) || exit
eval "$lock"
echo $$ >script.pid
bash -c 'trap "" TERM; exec 9<> <(:); echo $$ >child.pid; touch ready; read -rt 600 -u 9' &
trap 'echo "$DLOCK_FENCE" >term; exit 9' TERM
exec 9<> <(:)
until [[ -e end ]]; do read -rt 0.02 -u 9 || :; done
SH
cat >next <<'SH'
#!/bin/bash
touch next.ran
[[ $1 == --alone ]] || exit 0
for pid in $(<script.pid) $(<child.pid); do
  # A zombie has ended.
  if grep -q '^State:.[^ZX]' "/proc/$pid/status" 2>/dev/null; then echo "$pid is alive" >overlap; fi
done
SH
chmod +x script next

keepers() { pgrep -f "^lock keeper$1 for pid $(<script.pid)\$"; }
begin() {
  rm -f next.ran overlap
  start_script ./script
  script=${pid[script]}
}
next_runs() {
  "$DLOCK" run -q -k job -- ./next "$1"
  [[ ! -e overlap ]] || fail "the next holder runs beside the script: $(<overlap)"
}

# Its end ends the lock; what it leaves behind is its own affair.
begin
assert_held job
"$DLOCK" show --json job | grep -q "\"pid\": $script"
"$DLOCK" show --json job | grep -q '"kind": "acquire"'
first=$(keepers "")
second=$(keepers " 2")
touch end
next_runs --beside
ends 0 script
wait_until 10 gone "$first" "$second"
kill -KILL "$(<child.pid)"

# Killed, one or the other.
for which in "" " 2"; do
  begin
  kill -KILL "$(keepers "$which")"
  next_runs --alone
  ends 9 script
  [[ -s term ]] || fail "no SIGTERM came first"
  assert_contains "$(<script.err)" 'was killed; ending '
  wait_until 10 gone "$first" "$second"
done

# Stopped, and then the other one is killed: who is stopped wakes up for that.
for which in "" " 2"; do
  begin
  kill -STOP "$(keepers "$which")"
  [[ -n $which ]] && which="" || which=" 2"
  kill -KILL "$(keepers "$which")"
  next_runs --alone
  ends 9 script
done

# Stopped: the second one goes on; without the first one the lease ends, where it can.
begin
kill -STOP "$(keepers " 2")"
if [[ $backend != file ]]; then
  first=$(keepers "")
  kill -STOP "$first"
  kill -CONT "$(keepers " 2")"
  next_runs --alone
  ends 137 script
  wait_until 10 gone "$first"
else
  kill -CONT "$(keepers " 2")"
  touch end
  ends 0 script
  kill -KILL "$(<child.pid)"
fi
wait_until 10 is_free job  # a keeper releases it when it has seen the end
