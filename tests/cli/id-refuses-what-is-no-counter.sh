#!/usr/bin/env bash
# What dlock id cannot do ends in the right status, with one line on stderr and nothing on stdout.  Bad command lines
# are in refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
export DLOCK_QUIET=1
# refuses STATUS TEXT ARGUMENTS...
refuses() {
  local want=$1 text=$2 got=0 begun=$EPOCHSECONDS
  shift 2
  timeout -s KILL 60 "$DLOCK" id "$@" >out 2>err </dev/null || got=$?
  assert_equal "$want" "$got" "exit status of dlock id $* ($(<err))"
  assert_equal "1/" "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of dlock id $* ($(<err))"
  assert_contains "$(<err)" "$text" "stderr of dlock id $*"
  ((EPOCHSECONDS - begun <= 10)) || fail "dlock id $* took $((EPOCHSECONDS - begun)) s to be refused"
}

# The file backend.
refuses 69 "$tmp/missing" --name x --backend "file://$tmp/missing"
mkdir -m 0777 open
refuses 77 "$tmp/open" --name x --backend "file://$tmp/open"
assert_equal 1 "$("$DLOCK" id --name x)"
for content in hello '' ' 1' 'dlock 00000000000000000007 00001 0000000000000000
1'; do
  printf %s "$content" >"$locks/~ids/x"
  [[ -n $content ]] || continue
  refuses 64 "$locks/~ids/x was not written by dlock" --name x
done
rm "$locks/~ids/x"
ln -s /etc/passwd "$locks/~ids/x"
refuses 77 'is a symbolic link' --name x
rm "$locks/~ids/x"
assert_equal 1 "$("$DLOCK" id --name x)"

# A process that is stopped in the middle holds the others up, and they say so.
python3 - "$locks/~ids/x" <<'PY' &
import fcntl, sys, time
record = open(sys.argv[1], 'r+')
fcntl.flock(record, fcntl.LOCK_EX)
open('locked', 'w').close()
time.sleep(60)
PY
wait_until 20 test -e locked
refuses 69 'is it stopped?' --name x --connect-timeout 0.5
assert_equal 1 "$("$DLOCK" id --name y)"
kill $!

# A redis server.
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
rcli a set '{dlock:x}:number' hello >/dev/null
refuses 64 '"{dlock:x}:number" was not written by dlock' --name x
rcli a set '{dlock:x}:number' '1795000000000 9223372036854775806' >/dev/null
refuses 64 'has not so many numbers left' --name x --count 2
assert_equal 9223372036854775807 "$("$DLOCK" id --name x)"
refuses 64 'has not so many numbers left' --name x
rcli a acl setuser weak on '>pw' '~dlock:*' '~{dlock:*' '&*' +@all -eval >/dev/null
refuses 77 'eval' --name y --backend "${redis_url[a]/:\/\//:\/\/weak:pw@}"
rcli a replicaof 127.0.0.1 1 >/dev/null
refuses 69 'is a replica' --name y
refuses 69 'is a replica' --snowflake
rcli a replicaof no one >/dev/null
pause_redis a
refuses 69 'no answer within' --name y --connect-timeout 0.3
resume_redis a
stop_redis a
refuses 69 'connection refused' --name y --connect-timeout 0.5
