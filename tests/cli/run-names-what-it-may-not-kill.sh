#!/usr/bin/env bash
# A process of the job that dlock may not kill (one that became root) is named with the reason, and the lock is kept
# until it has ended.
. "$(dirname "$0")/lib.sh"
need python3 setpriv
((EUID == 0)) || skip "only root can make a set-uid program"

cd "$tmp"
chmod 711 .
mkdir -m 0700 nobody
chown 65534 nobody
cp "$DLOCK" dlock
cp "$(command -v setpriv)" become-root
chmod 4755 become-root
cat >nobody/script <<SH
#!/bin/sh
$tmp/become-root --reuid 0 sh -c 'trap "" TERM; echo \$\$ >$tmp/nobody/pid; exec sleep 1000'
SH
chmod 755 nobody/script
at_exit() { kill -KILL "$(<nobody/pid)"; }  # dlock cannot
as_nobody() { exec setpriv --reuid 65534 --clear-groups env HOME=/ DLOCK_BACKEND="file://$tmp/nobody" "$@"; }
as_nobody ./dlock run -k job --max-hold 1 --kill-after 0.1 --status-file nobody/status -- nobody/script 2>err &
launcher=$!
wait_until 30 test -s nobody/pid
said() { grep -q "$1" err; }
wait_until 30 said "cannot be killed: Operation not permitted (kill it as root); keeping \"job\" until it has ended"
pid=$(<nobody/pid)
assert_contains "$(<err)" "(pid $pid), a process of the job, cannot be killed" "stderr"
! gone "$pid" || fail "the process is gone"
(as_nobody ./dlock run -q -n -k job -- true) && fail "another has the lock although the process lives"
kill -KILL "$pid"
status=0
wait "$launcher" || status=$?
assert_equal 124 "$status" "the status"
assert_contains "$(<nobody/status)" "Operation not permitted" "the status file"
(as_nobody ./dlock run -q -n -k job -- true) || fail "the lock is not free"
