#!/usr/bin/env bash
# The supervisor tells the launcher of the grant, and passes on a descriptor with that.  If the kernel refuses (the user has too
# many descriptors in flight), the run ends with 70 and nothing is left: no lock, no process.
. "$(dirname "$0")/lib.sh"
need python3 setpriv
((EUID == 0)) || skip "root is needed, to become a user that has no descriptors in flight"
cd "$tmp"
chown -R 65533 "$tmp"
user=(setpriv --reuid 65533 --clear-groups --)
"${user[@]}" "$DLOCK" version >/dev/null || skip "another user cannot run this dlock"

# Sends descriptors that nobody receives.
cat >park.py <<'E2'
import array, os, socket, sys, time
keep = []
for _ in range(40):
    here, there = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    keep += [here, there]
    for _ in range(5):
        here.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0]))])
open("parked", "w").close()
time.sleep(600)
E2
"${user[@]}" env PATH=/usr/bin:/bin python3 park.py &
wait_until 30 test -e parked

ulimit -n 100
# refuses STATUS OPTIONS...
refuses() {
  local want=$1 got=0
  shift
  timeout -s KILL 30 "${user[@]}" "$DLOCK" run -k job "$@" -- touch ran 2>err || got=$?
  assert_equal "$want" "$got" "status with $* ($(<err))"
  assert_contains "$(<err)" 'Too many references' "stderr with $*"
}
for kind in '' --shared --slots=2; do
  refuses 70 ${kind:+"$kind"}
done
[[ ! -e ran ]] || fail "the command was started"
kill %1
wait %1 || true
expect_status 0 "${user[@]}" "$DLOCK" run -q -n -k job -- true
