#!/usr/bin/env bash
# When list, show or force-release cannot answer, they say why in one line on stderr, print nothing, and
# exit with the status that "dlock run" has for it.  Bad command lines are in refused-command-lines.txt.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
dlock=("$DLOCK")

# refuses STATUS TEXT ARGUMENTS...: dlock ARGUMENTS is refused soon, in one line that has TEXT.
refuses() {
  local want=$1 text=$2 got=0 begun=$EPOCHSECONDS
  shift 2
  DLOCK_BACKEND=${url:-$DLOCK_BACKEND} timeout -s KILL 60 "${dlock[@]}" "$@" >out 2>err </dev/null || got=$?
  assert_equal "$want" "$got" "exit status of dlock $* ($(<err))"
  assert_equal "1/" "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of dlock $* ($(<err))"
  assert_contains "$(<err)" "dlock: " "stderr of dlock $*"
  assert_contains "$(<err)" "$text" "stderr of dlock $*"
  ((EPOCHSECONDS - begun <= 10)) || fail "dlock $* took $((EPOCHSECONDS - begun)) s to be refused"
}
# all_refuse STATUS TEXT OPTIONS...: each of the three does.
all_refuse() {
  local status=$1 text=$2
  shift 2
  refuses "$status" "$text" list "$@"
  refuses "$status" "$text" show job "$@"
  refuses "$status" "$text" force-release --yes job "$@"
}

# The file backend.
all_refuse 69 "$tmp/missing" --backend "file://$tmp/missing"
touch file
all_refuse 77 'is not a directory' --backend "file://$tmp/file"
mkdir -m 0777 open
all_refuse 77 "$tmp/open" --backend "file://$tmp/open"
"$DLOCK" run -k job -- true
chmod 711 "$tmp"
cp -- "$DLOCK" dlock
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/dlock")
if ((EUID == 0)) && "${nobody[@]}" version >/dev/null 2>&1; then
  dlock=("${nobody[@]}")
  all_refuse 77 "$locks" # it is 0700
  chmod 711 "$locks"
  all_refuse 77 "$locks"
  chmod 755 "$locks"  # but not its files
  refuses 77 "$locks" show job
  refuses 77 "$locks" force-release --yes job
  chmod 700 "$locks"
  dlock=("$DLOCK")
fi

# A redis server: $url is where they look.
start_redis a
works=${redis_url[a]}
with() { url=${works/:\/\//:\/\/$1@}; }  # a password
url=redis://127.0.0.1:1 all_refuse 69 '127.0.0.1:1: connection refused'
with :secret
all_refuse 77 'the server has none'
assert_lacks "$(<err)" secret "stderr"
rcli a acl setuser weak on '>pw' '~dlock:*' '~{dlock:*' '&*' +@all -scan >/dev/null
with weak:pw
refuses 77 'scan' list
expect_status 1 env "DLOCK_BACKEND=$url" "$DLOCK" show job >out
rcli a acl setuser weak +@all -evalsha -eval >/dev/null
refuses 77 'eval' show job
refuses 77 'eval' force-release --yes job
with weak:other
all_refuse 77 'wrong password'
rcli a config set requirepass pw >/dev/null
url=$works
all_refuse 77 'needs a password'
REDISCLI_AUTH=pw rcli a config set requirepass '' >/dev/null
pause_redis a
all_refuse 69 'no answer within' --connect-timeout 0.3
resume_redis a
stop_redis a
all_refuse 69 'connection refused'
