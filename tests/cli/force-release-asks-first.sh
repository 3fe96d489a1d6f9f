#!/usr/bin/env bash
# ctest: every kind of backend
# On a terminal "dlock force-release" shows who holds the lock and breaks it if the answer is "yes": no
# other answer does, nor does it break who got the lock meanwhile.  Without a terminal it refuses.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3
python=$(python3 -c 'import sys; print(sys.executable)')  # python3 may be a shim that takes its time

cat >ask.py <<'PY'
# ask.py ANSWER MEANWHILE ARGUMENTS...: dlock force-release ARGUMENTS on a terminal of its own.  Once it
# asks, the shell commands MEANWHILE are run, and then ANSWER is typed.  Writes what the terminal shows;
# exits with its status, or with 100 + the signal that it died of.
import os, pty, signal, subprocess, sys

answer, meanwhile, *arguments = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.alarm(60)
    os.execv(os.environ['DLOCK'], ['dlock', 'force-release', *arguments])
seen, asked = b'', False
try:
    while chunk := os.read(terminal, 4096):
        seen += chunk
        if not asked and seen.endswith(b': '):
            asked = True
            subprocess.run(['bash', '-euc', meanwhile], check=True)
            os.write(terminal, answer.encode().decode('unicode_escape').encode())
except OSError:
    pass
sys.stdout.buffer.write(seen.replace(b'\r\n', b'\n'))
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
sys.exit(100 - status if status < 0 else status)
PY
# answers STATUS ANSWER MEANWHILE [ARGUMENTS]: force-release ARGUMENTS, "job" if there are none.
answers() {
  local want=$1 got=0
  shift
  (($# > 2)) || set -- "$@" job
  "$python" ask.py "$@" >seen || got=$?
  assert_equal "$want" "$got" "status after the answer $(printf '%q' "$1") ($(<seen))"
}
# lives NAME: it holds the lock, alone or as the last one, and runs.
lives() {
  ! gone "${pid[$1]}" "$(<"$1.pid")" || fail "$1 does not run any more: $(<"$1.err")"
  [[ $("$DLOCK" show -o id job) == *"$(head -c 12 "$1.token")" ]] || fail "$1 lost the lock"
}

holder a -k job --label 'at 3am'
for answer in 'y\n' 'YES\n' 'Yes\n' 'yes \n' ' yes\n' 'yess\n' '\n' 'no\nyes\n' '\x04' 'ye\x04\x04'; do
  answers 1 "$answer" :
  assert_contains "$(<seen)" 'dlock: not broken: the answer was "' "what is said after the answer $answer"
done
lives a
assert_equal "job: held, exclusive" "$(head -n 1 seen)" "the question"
for line in "Backend   $location" "Holder    $(id -un) on $(uname -n), pid ${pid[a]}, dlock run" 'Command   ./job' \
  'Label     at 3am' "Id        $(head -c 12 a.token)"; do
  grep -qxF "  $line" seen || fail "the question does not show \"$line\": $(<seen)"
done
assert_contains "$(<seen)" $'\n\nIf you break this lock:\n  - '"$(uname -n | cut -d. -f1) ends job" "the question"
assert_contains "$(<seen)" 'Type "yes" to break it, anything else to leave it: ' "the question"

# Ctrl-C.
answers 102 '\x03' :
lives a

# Nobody to ask.
for input in '</dev/null' '<&-' '< <(yes yes)' '<a.held' '<<<yes'; do
  got=0
  eval "\"\$DLOCK\" force-release job $input" >out 2>err || got=$?
  assert_equal "64//1" "$got/$(<out)/$(wc -l <err)" "status, stdout and lines of stderr with $input ($(<err))"
  assert_contains "$(<err)" '--yes breaks it without a question' "stderr with $input"
done
lives a

# It is not asked about what cannot be: the status is told at once.
answers 1 '' 'exit 1' --id 0123456789ab job
answers 1 '' 'exit 1' --older-than 1h job
answers 1 '' 'exit 1' free
answers 64 '' 'exit 1' --reason $'a\nb' job
lives a

# Whoever got the lock while the question stood keeps it.
waiter b job -q
answers 1 'yes\n' 'touch a.go; until test -e b.held; do sleep 0.02; done'
ends 0 a
lives b
assert_equal '' "$(<b.err)" "stderr of the next holder"
assert_contains "$(<seen)" 'not broken: "job" (held ' "what is said when the holder has changed"
waiter c job
answers 1 'yes\n' "touch b.go c.go; while kill -0 ${pid[b]} ${pid[c]}; do sleep 0.02; done 2>/dev/null"
assert_contains "$(<seen)" 'not broken: "job" (held ' "what is said when the holder has gone"
ends 0 b c

# Of two that were shown, the one that still holds is broken, and who came after the other is not.
holder a -k job --slots 2
holder b -k job --slots 2
waiter c job --slots 2
answers 0 'yes\n' 'touch a.go; until test -e c.held; do sleep 0.02; done'
assert_contains "$(<seen)" 'Type "yes" to break all 2, anything else to leave it: ' "the question about two"
grep -q "^dlock: not broken: \"job\" (held .*, pid ${pid[a]} (job)) was released" seen ||
  fail "the answer about two: $(<seen)"
grep -q "^dlock: broke \"job\" (held .*, pid ${pid[b]} (job))" seen || fail "the answer about two: $(<seen)"
ends 0 a
ends 79 b
lives c
finish c

# An answer takes its time, and a server may close a connection that is silent for so long.
holder a -k job
cut=:
if [[ $backend == redis ]]; then
  cut="redis-cli -p ${redis_port[server]} client kill type normal >killed; test \"\$(<killed)\" -ge 1"
fi
answers 0 'yes\n' "$cut"
assert_contains "$(<seen)" 'broke "job" (held ' "an answer that took its time"
ends 79 a
