#!/usr/bin/env bash
# Whatever keeps "dlock acquire" from the lock, a script hears of it: by its exit status, and, if it evaluates what
# --export prints, by the status of that.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need dash bash zsh fish python3

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
"$DLOCK" acquire -k held --ttl 10m >token

# fails STATUS ARGUMENTS...: with --export, dlock acquire ARGUMENTS prints a statement with that status, and exits with
# it; without, nothing.
fails() {
  local want=$1 form
  shift
  for form in --export --export=sh --export=fish; do
    expect_status "$want" "$DLOCK" acquire "$form" "$@" >out 2>err
    assert_equal "sh -c 'exit $want'" "$(<out)" "what dlock acquire $form $* prints"
    [[ -s err ]] || fail "dlock acquire $form $* says nothing"
  done
  expect_status "$want" "$DLOCK" acquire "$@" >out 2>err
  assert_equal '' "$(<out)" "what dlock acquire $* prints"
}
fails 75 -k held --ttl 10m -n
fails 75 -k free -k held --ttl 10m -w 0.1
fails 64 -k free
fails 64 -k free --ttl 10m --while $$
fails 64 -k free --ttl 10m more
fails 64 -k free --ttl 10m --no-such-flag
fails 64 -k free --ttl
fails 64 -k free --ttl=
fails 64 -k
fails 64 --ttl 10m
fails 64 -k held --ttl 10m --shared --slots 2
fails 64 -k held --ttl 10m --slots 2
fails 78 -k free --ttl 10m --config missing.json
fails 69 -k free --ttl 10m --backend redis://127.0.0.1:1 --connect-timeout 0.1
rcli a acl setuser weak on '>pw' '~other' +@all >/dev/null
DLOCK_BACKEND=${redis_url[a]/:\/\//:\/\/weak:pw@} fails 77 -k free --ttl 10m
expect_status 64 "$DLOCK" acquire --export=nonsense -k free --ttl 10m >out 2>err
assert_equal "sh -c 'exit 64'" "$(<out)"
assert_contains "$(<err)" '--export: "nonsense" is none of: sh, fish'
expect_status 64 "$DLOCK" acquire --export= -k free --ttl 10m >out 2>err
assert_equal "sh -c 'exit 64'" "$(<out)"
expect_status 64 "$DLOCK" acquire -k held --ttl 10m -- --export >out 2>err
assert_equal '' "$(<out)" "what is printed where --export is no option"
assert_free free

# What the shells make of it.
export ARGUMENTS='-k held --ttl 10m -n'
for shell in dash bash zsh; do
  reports() { # STATUS CODE
    expect_status "$1" "$shell" -c "$2" >out 2>err
    assert_lacks "$(<out)" 'goes on' "what is done without the lock ($shell -c $2)"
  }
  dlock="\"\$DLOCK\" acquire --export ${ARGUMENTS}"
  reports 75 "set -e; eval \"\$($dlock)\"; echo goes on"
  reports 75 "eval \"\$($dlock)\" || exit; echo goes on"
  reports 3 "if eval \"\$($dlock)\"; then echo goes on; fi; exit 3"
  reports 75 "lock=\$($dlock) || exit; echo goes on"
  reports 75 "set -e; lock=\$($dlock); echo goes on"
  reports 75 "set -e; token=\$(\"\$DLOCK\" acquire $ARGUMENTS); echo goes on"
done
for code in "eval (\$DLOCK acquire --export=fish $ARGUMENTS); or exit; echo goes on" \
  "set lock (\$DLOCK acquire --export=fish $ARGUMENTS); or exit; echo goes on"; do
  expect_status 75 fish --no-config -c "$code" >out 2>err
  assert_lacks "$(<out)" 'goes on' "what is done without the lock (fish)"
done

# A signal while it waits: nobody is left in the queue.
queued() { [[ $(rcli a zcard '{dlock:held}:queue') == "$1" ]]; }
mark=dlock-acquire-$$
none_left() { ! grep -qzsxF "MARK=$mark" /proc/[0-9]*/environ; }
for form in '' --export; do
  for signal in INT TERM HUP; do
    MARK=$mark env --default-signal "$DLOCK" acquire $form -k free -k held --ttl 10m >out 2>err &
    wait_until 30 queued 1
    kill -"$signal" $!
    status=$((128 + $(kill -l "$signal")))
    expect_status $status wait $!
    assert_equal "${form:+sh -c 'exit $status'}" "$(<out)" "what it prints after SIG$signal"
    queued 0 || fail "LEFT BEHIND: a waiter that got SIG$signal is still in the queue"
    none_left || fail "LEFT BEHIND: a process of one that got SIG$signal"
    assert_free free
  done
done
# Ctrl-C on a terminal ends the script, too.
cat >waits.sh <<'SH'
eval "$("$DLOCK" acquire --export -k free -k held --ttl 10m)"
touch gone-on
SH
MARK=$mark timeout -s KILL 60 python3 - <<'PY' || fail "Ctrl-C does not end the script"
import os, pty, signal
pid, terminal = pty.fork()
if pid == 0:
    os.execvp('bash', ['bash', 'waits.sh'])
try:
    while data := os.read(terminal, 4096):
        if b': waiting ' in data:
            os.write(terminal, b'\x03')
except OSError:
    pass
status = os.waitpid(pid, 0)[1]
assert os.WTERMSIG(status) == signal.SIGINT, status
PY
[[ ! -e gone-on ]] || fail "the script goes on after Ctrl-C"
queued 0 || fail "LEFT BEHIND: a waiter that got Ctrl-C is still in the queue"
wait_until 30 none_left

# Killed outright: the rest of it is gone in a moment.
MARK=$mark env --default-signal "$DLOCK" acquire -k free -k held --ttl 10m >out 2>err &
wait_until 30 queued 1
{ kill -KILL $! && wait $!; } 2>/dev/null || true
wait_until 30 none_left
wait_until 30 queued 0
wait_until 30 is_free free
