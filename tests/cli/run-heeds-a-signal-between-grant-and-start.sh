#!/usr/bin/env bash
# A signal that comes between the grant and the start of the command: the lock is freed, the command
# never started.
. "$(dirname "$0")/lib.sh"
need python3

state() { # PID LETTER
  local stat
  read -r stat <"/proc/$1/stat"
  [[ ${stat##*) } == "$2"* ]]
}
has_pending() { # PID SIGNAL
  local mask
  mask=$(sed -n 's/^ShdPnd:\t//p' "/proc/$1/status")
  (((0x$mask >> ($(kill -l "$2") - 1)) & 1))
}

for signal in TERM INT HUP QUIT USR1 ALRM; do
  mkfifo "$tmp/go"
  "$DLOCK" run --key k -- sh -c "read -r x <$tmp/go" &
  wait_until 10 is_held k
  # INT and QUIT are ignored in the background jobs of a script: give them back.
  python3 -c 'import os, signal, sys
for s in signal.SIGINT, signal.SIGQUIT: signal.signal(s, signal.SIG_DFL)
os.execv(sys.argv[1], sys.argv[1:])' "$DLOCK" run -q --key k -- touch "$tmp/ran" &
  waiter=$!
  wait_until 10 has_waiter "$locks/k"
  # A stopped launcher cannot say "go": the supervisor holds the lock now, and waits for that word.
  kill -STOP "$waiter"
  wait_until 10 state "$waiter" T
  echo >"$tmp/go"
  wait %1 || fail "the holder failed"
  wait_until 10 is_held k
  kill -s "$signal" "$waiter"
  kill -CONT "$waiter"
  status=0
  wait "$waiter" || status=$?
  assert_equal $((128 + $(kill -l "$signal"))) "$status" "the status after $signal"
  [[ ! -e $tmp/ran ]] || fail "the command was started in spite of $signal"
  expect_status 0 "$DLOCK" run --key k -n -- true
  rm "$tmp/go"
done

# Ctrl-C when the launcher has said "go", but the command does not exist yet: the terminal sends the signal to the two
# processes of dlock alone.
cat >"$tmp/terminal.py" <<'PYTHON'
import os, pty, signal, sys, time
tmp, key, *command = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    for s in signal.SIGINT, signal.SIGQUIT: signal.signal(s, signal.SIG_DFL)
    os.execv(command[0], command)
with open(tmp + "/new", "w") as file:
    file.write(str(pid))
os.rename(tmp + "/new", tmp + "/launcher")
while not os.path.exists(tmp + "/press"):
    time.sleep(0.01)
os.write(terminal, bytes([int(key)]))
code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(code if code >= 0 else 128 - code)
PYTHON
for signal in INT QUIT; do
  [[ $signal == INT ]] && key=3 || key=28
  mkfifo "$tmp/go"
  "$DLOCK" run --key k -- sh -c "read -r x <$tmp/go" &
  holder=$!
  wait_until 10 is_held k
  python3 "$tmp/terminal.py" "$tmp" "$key" "$DLOCK" run -q --key k -- touch "$tmp/ran" &
  terminal=$!
  wait_until 10 test -e "$tmp/launcher"
  launcher=$(<"$tmp/launcher")
  wait_until 10 has_waiter "$locks/k"
  read -r supervisor <"/proc/$launcher/task/$launcher/children" || true  # no newline at its end
  kill -STOP "$launcher"
  wait_until 10 state "$launcher" T
  echo >"$tmp/go"
  wait "$holder" || fail "the holder failed"
  wait_until 10 is_held k
  wait_until 10 state "$supervisor" S  # waits for the launcher's word
  kill -STOP "$supervisor"
  wait_until 10 state "$supervisor" T
  kill -CONT "$launcher"
  wait_until 10 state "$launcher" S  # has said it
  touch "$tmp/press"
  wait_until 10 has_pending "$supervisor" $signal
  kill -CONT "$supervisor"
  status=0
  wait "$terminal" || status=$?
  [[ ! -e $tmp/ran ]] || fail "the command was started in spite of $signal from the terminal"
  assert_equal $((128 + $(kill -l $signal))) "$status" "the status after $signal from the terminal"
  assert_free k
  rm "$tmp/go" "$tmp/launcher" "$tmp/press"
done
