#!/usr/bin/env bash
# The systemd units of the manual: of three machines one runs the job; a daemon of Type=notify runs on one machine,
# systemd hears that it is ready, and the next machine starts it when it ends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/recipe.sh"
need python3

prod_is_redis
export DLOCK_BACKEND=prod
write_recipes systemd-service systemd-timer systemd-notify
if command -v systemd-analyze >/dev/null; then
  assert_contains "$(systemd-analyze calendar "$(sed -n 's/^OnCalendar=//p' systemd-timer)")" 'Next elapse'
fi

# command_of UNIT: its command line, with the programs of this test.
command_of() { sed -n '/^ExecStart=/,$p' "$1" | sed -z 's/\\\n//; s/^ExecStart=//' | sed 's,/usr/bin/dlock,dlock,; s,/srv/,./,'; }

executable sync-all <<'SH'
#!/bin/sh
echo run >>runs
SH
for machine in 1 2 3; do
  sh -c "$(command_of systemd-service)" >out 2>&1 || fail "machine $machine: status $?: $(<out)"
done
assert_equal run "$(<runs)" "runs on three machines"

# systemd takes a message of any process of the unit if NotifyAccess=all, else only of the main process.
executable scheduler <<'SH'
#!/usr/bin/env python3
import os, socket, time
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
time.sleep(1000)
SH
cat >manager.py <<'PY'
import os, re, socket, struct, subprocess, sys
machine, unit, command = sys.argv[1:]
access = re.search(r"^NotifyAccess=(\w+)$", unit, re.M)
door = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
door.bind("notify." + machine)
service = subprocess.Popen(["sh", "-c", "exec " + command], env=dict(os.environ, NOTIFY_SOCKET=os.path.abspath("notify." + machine)))
open("main." + machine, "w").write(str(service.pid))
while True:
    text, extra, _, _ = door.recvmsg(100, 100)
    sender = struct.unpack("iII", extra[0][2])[0]
    if access and access.group(1) == "all" or sender == service.pid:
        open("ready." + machine, "w").write(text.decode())
PY
for machine in 1 2; do
  setpriv --pdeathsig KILL python3 manager.py $machine "$(<systemd-notify)" "$(command_of systemd-notify)" 2>err.$machine &
  [[ $machine == 2 ]] || wait_until 30 test -s ready.1
done
assert_equal READY=1 "$(<ready.1)" "what systemd hears"
wait_until 30 grep -qs waiting err.2
[[ ! -e ready.2 ]] || fail "two daemons are active"
kill "$(<main.1)"
wait_until 30 test -s ready.2
kill "$(<main.2)"
wait_until 30 is_free scheduler
