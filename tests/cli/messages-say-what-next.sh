#!/usr/bin/env bash
# A message names the culprit, where its value is from, and the next step: those that need a job, a lock or a server.
# What a command line alone is refused for is in refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/backends.sh"
need python3
cd "$tmp"

# says STATUS TEXT COMMAND...: its only line on stderr is this one.
says() {
  local want=$1 text=$2 got=0
  shift 2
  "$@" >out 2>err || got=$?
  assert_equal "$want" "$got" "status of $* ($(<err))"
  assert_equal "dlock: $text" "$(<err)" "stderr of $*"
}
run=("$DLOCK" run -k job --)

# Nothing at all: the overview, and the status of a wrong command line.
got=0
"$DLOCK" 2>err || got=$?
"$DLOCK" help >overview
assert_equal "64" "$got" "status of dlock alone"
cmp overview err || fail "dlock alone does not print the overview"

# Which dlock this is.
version=$("$DLOCK" version | head -n 1)
[[ $version =~ ^'dlock '[0-9]+\.[0-9]+\.[0-9]+('+'[0-9]+'.g'[0-9a-f]{8})?$ ]] || fail "the version is $version"

# Commands that are none.
says 127 "command not found: \"ls -l\"; write -- ls -l, or -- sh -c 'ls -l'" "${run[@]}" 'ls -l'
says 127 "command not found: \"a | b\"; write -- sh -c 'a | b'" "${run[@]}" 'a | b'
says 127 "command not found: ./none" "${run[@]}" ./none
PATH=/usr/bin:/bin says 127 "command not found: nosuchcmd (PATH=/usr/bin:/bin)" "${run[@]}" nosuchcmd
printf '#!/none\n' >script
chmod +x script
says 127 "./script: its interpreter was not found (see its first line)" "${run[@]}" ./script

# Another mode.
holder a -k s1 --slots 2
says 64 '"s1" is in use with --slots 2, and you asked for an exclusive lock; use --slots 2, or another key' \
  "$DLOCK" run -k s1 -- true
holder b -k x1
says 64 '"x1" is in use as an exclusive lock, and you asked for --slots 2; leave --slots 2 out, or another key' \
  "$DLOCK" run -k x1 --slots 2 -- true
finish a b

# Where the address and the password are from: cron, sudo and a shell differ in that.  And what finds out more.
see='; see: dlock doctor'
DLOCK_BACKEND=redis://127.0.0.1:1 says 69 "redis 127.0.0.1:1: connection refused; backend from DLOCK_BACKEND$see -b redis://127.0.0.1:1" \
  "$DLOCK" list
says 69 "redis 127.0.0.1:1: connection refused$see -b redis://127.0.0.1:1" "$DLOCK" list -b redis://127.0.0.1:1
printf '{\n"backends": {"prod": {\n"url": "redis://127.0.0.1:1"}}}' >config.json
chmod 600 config.json
says 69 "redis 127.0.0.1:1: connection refused; backend from config.json:3$see --config config.json -b prod" \
  "$DLOCK" list --config config.json -b prod
says 69 "redis 127.0.0.1:1: connection refused; tried for 1s; backend from config.json:3$see --config config.json -b prod" \
  "$DLOCK" run --config config.json -b prod --connect-timeout 1.4 -k job -- true
start_redis server
rcli server acl setuser locks on '>right' '~*' '&*' '+@all' >/dev/null
at=127.0.0.1:${redis_port[server]}
printf 'wrong\n' >password
chmod 600 password
says 77 "redis $at: wrong password for user \"locks\", or there is no such user; password from password$see -b redis://locks@$at --password-file password" \
  "$DLOCK" list -b "redis://locks@$at" --password-file password
printf 'right\r\n' >password  # of an editor on Windows
says 0 "no locks in redis://locks:***@$at/0" "$DLOCK" list -b "redis://locks@$at" --password-file password

# The last try is not the reason: that is how long none has succeeded.
export DLOCK_BACKEND=redis://$at
"$DLOCK" run -k job --ttl 3 -- sh -c 'touch held; exec sleep 100' 2>err &
loser=$!
wait_until 30 test -e held
pause_redis server
expect_status 79 wait "$loser"
grep -qE "^dlock: lost \"job\": no renewal succeeded for [0-9.]+m?s \(redis $at: no answer\); ending sh \(pid [0-9]+\)\$" err ||
  fail "a lock is lost with: $(<err)"
resume_redis server
unset DLOCK_BACKEND

# A key that is misspelt, on a terminal.
export DLOCK_BACKEND=file://$locks
holder a -k Nightly-report
cat >show.py <<'PY'
import os, pty, sys
pty.spawn([os.environ['DLOCK'], 'show', 'nightly-report'])
PY
python3 show.py >out || true
assert_contains "$(<out)" '  Held are  Nightly-report' "show of a key that is misspelt"
assert_lacks "$("$DLOCK" show nightly-report || true)" 'Held are' "show in a pipe"
finish a

# The default directory of another user.
((EUID == 0)) && unshare -m true 2>/dev/null || exit 0
unset DLOCK_BACKEND
mkdir world world/dlock-65534 world/dlock-1x
chown 65534 world/dlock-65534
# shellcheck disable=SC2016
unshare -m bash -c 'mount --bind world /tmp && mount -t tmpfs none /run && exec "$DLOCK" list' 2>err ||
  exit 0  # the one under test is below /tmp
grep -q '; locks of other users of this machine: /tmp/dlock-65534 (nobody). Use: runuser -u nobody -- dlock list' err ||
  fail "an empty list of root: $(<err)"
