#!/usr/bin/env bash
# A nested run that cannot borrow the lock of the run above it fails instead of waiting for its own job for ever, and one
# that asks for another lock is not hindered.
. "$(dirname "$0")/lib.sh"
need python3 prlimit
[[ $(uname -m) == @(x86_64|aarch64) ]] || skip "forbid.py does not know the system calls of $(uname -m)"
cd "$tmp"

# nested STATUS KEY [WORDS]: how a run on this key ends that starts now.
nested() {
  cat <<SH
got=0
timeout -s KILL 40 "$DLOCK" run -k $2 --connect-timeout 20 -- true 2>nested.err || got=\$?
if [ \$got != $1 ] || ! grep -q '${3-}' nested.err; then echo "$2: \$got, \$(cat nested.err)" >&2; exit 1; fi
SH
}
touch nested.err
words='cannot borrow "outer" from the outer run: '

# No local sockets, as RestrictAddressFamilies of systemd forbids them.
python3 "$TEST_SOURCE/tests/cli/forbid.py" socket:1 EAFNOSUPPORT "$DLOCK" run -k outer -- sh -ec "
  : >nested.err; $(nested 69 outer "$words" )
  echo >nested.err; $(nested 0 other | sed 's/ || ! grep.*; then/; then/')
" || fail "without local sockets"

# No descriptor for a connection, but some later.
"$DLOCK" run -k outer -- sh -ec "
  echo \${DLOCK_SUPERVISORS%%,*} >address
  echo \$PPID >supervisor
  until [ -e go ]; do sleep 0.02; done
  $(nested 0 outer | sed 's/ || ! grep.*; then/; then/')
" &
outer=$!
wait_until 30 test -s supervisor
supervisor=$(<supervisor)
usual=$(prlimit --pid "$supervisor" --nofile --noheadings --output SOFT | tr -d ' ')
prlimit --pid "$supervisor" --nofile=3:
touch go
# It has been connected to, and cannot accept that.
knocks() { (($(grep -c "@dlock-$(<address)" /proc/net/unix) > 1)); }
wait_until 30 knocks
sleep 0.2
prlimit --pid "$supervisor" --nofile="$usual:"
expect_status 0 wait "$outer"

# No registration, and a supervisor that cannot make another one: nobody can tell the owner id.
"$DLOCK" run -k outer -- sh -ec "
  trap 'kill -CONT \$PPID' EXIT
  kill -STOP \$PPID
  rm -r '$locks/outer~w'
  $(nested 69 outer 'cannot borrow "outer": a process above this one holds it')
" || fail "without a registration"
