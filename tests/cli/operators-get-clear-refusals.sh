#!/usr/bin/env bash
# When list, show or force-release cannot answer, they say why in one line on stderr, print nothing, and
# exit with the status that "dlock run" has for it.
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

# Command lines.
for command in show 'force-release --yes'; do
  # shellcheck disable=SC2086  # words
  set -- $command
  refuses 64 'KEY' "$@"
  refuses 64 'the key is empty' "$@" ''
  refuses 64 'is 256 bytes long' "$@" "$(printf '%256s' '')"
  refuses 64 'holds a control character' "$@" $'a\nb'
  refuses 64 'is not valid UTF-8' "$@" $'a\xff'
  refuses 64 'more' "$@" job more
done
refuses 64 'two' list one two
all_refuse 64 '--no-such-flag' --no-such-flag
all_refuse 64 '--wait' --wait 1
all_refuse 64 'etcd' --backend etcd
all_refuse 64 '--connect-timeout' --connect-timeout soon
for command in list 'show job'; do
  # shellcheck disable=SC2086
  set -- $command
  for columns in '' ',' 'key,' 'key, pid' KEY 'key;pid' '*'; do
    refuses 64 'there is no column "' "$@" --output "$columns"
    assert_contains "$(<err)" 'columns: key, mode, ' "what columns there are"
  done
  refuses 64 '--yes' "$@" --yes
  refuses 64 '--id' "$@" --id abc
done
refuses 64 '--older-than' list --older-than -1
refuses 64 '--older-than' show job --older-than 1
refuses 64 '--output' force-release --yes job --output key
refuses 78 'no.json' list --config no.json
echo '{"older_than": "1h"}' >config.json
refuses 78 'older_than' list --config config.json

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
refuses 77 'evalsha' show job
refuses 77 'evalsha' force-release --yes job
with weak:other
all_refuse 77 'wrong user or password'
rcli a config set requirepass pw >/dev/null
url=$works
all_refuse 77 'needs a password'
REDISCLI_AUTH=pw rcli a config set requirepass '' >/dev/null
pause_redis a
all_refuse 69 'no answer within' --connect-timeout 0.3
resume_redis a
stop_redis a
all_refuse 69 'connection refused'
