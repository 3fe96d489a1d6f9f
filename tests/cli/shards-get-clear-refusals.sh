#!/usr/bin/env bash
# A list of shards that cannot be is refused before anything is started, in one line that says where it
# stands; no password is shown.
. "$(dirname "$0")/lib.sh"
cd "$tmp"
unset DLOCK_BACKEND
umask 077
mkdir a b
a=file://$tmp/a b=file://$tmp/b

# refuses STATUS TEXT ARGUMENTS...: each command that has a backend ends so, and runs nothing.
refuses() {
  local want=$1 text=$2 line command wrapped got
  shift 2
  for line in "run -k job" list "show job" "force-release --yes job"; do
    read -ra command <<<"$line"
    wrapped=()
    [[ ${command[0]} != run ]] || wrapped=(-- touch ran)
    got=0
    "$DLOCK" "${command[@]}" "$@" "${wrapped[@]}" >out 2>err || got=$?
    assert_equal "$want" "$got" "the status of $line with $* ($(<err))"
    assert_equal 1 "$(wc -l <err)" "lines on stderr of $line with $* ($(<err))"
    assert_contains "$(<err)" "dlock: $text"
    assert_lacks "$(<err)" hunter2
    [[ ! -e ran && ! -s out ]] || fail "something was done: $line with $*"
  done
}
refuses 64 "--shard: shard 3 of 3 is the same database as shard 1" --shard "$a" --shard "$b,$a/"
refuses 64 "--shard: all shards must be of the same backend, not file and redis" --shard "$a,redis://h"
refuses 64 "--shard: shard 2 of 2 must be a URL" --shard "$a" --shard b
refuses 64 "--shard: shard 1 of 2: bad port in the URL: must be 1 to 65535" --shard redis://u:hunter2,redis://v:w@h
refuses 64 "--shard: says where the locks are, and so does --backend" --shard "$a" -b file
refuses 64 "--server: the URLs of --shard name their servers themselves" --shard redis://h -S h
refuses 64 "--prefix: the file backend has no prefix" --shard file:///x,file:///y --prefix p
DLOCK_SHARDS=$a,$b DLOCK_BACKEND=file refuses 64 "DLOCK_SHARDS: says where the locks are"
refuses 64 "--shard: shard 1 of 1 must be a URL" --shard ""

# One database in two spellings, of each backend that is built in.
built_in() { "$DLOCK" backends --json | grep -qzP "\"$1\"[^}]*\"built_in\": ?true"; }
same() {
  local backend=$1
  shift
  ! built_in "$backend" || refuses 64 "--shard: shard 2 of 2 is the same database as shard 1" --shard "$1" --shard "$2"
}
same file "$a" "file://$tmp//./a/."
same file file:// "file://$([[ $EUID == 0 ]] && echo /run/dlock || echo "/tmp/dlock-$EUID")"
same redis redis://h/0 redis://h/00
same redis redis://h "redis://H.:6379"
same redis redis:// rediss://localhost
same redis redis://127.0.0.1 redis://127.1
same redis redis://127.0.0.1 redis://0X7F.0.0.1
same redis "redis://[::1]" "redis://[0:0::0001]"
same redis redis+unix:///s "redis+unix:///s?db=0"
same redis redis+unix:///run/s "redis+unix:///run//./s"
same redlock redlock://a,b,c/1 redlock://C,b.,a:6379/01
same zookeeper zookeeper://a,b/x zookeeper://b,a:2181/x/
same zookeeper zookeeper://a zookeeper://a,A.
same mysql-table mysql://h/app mysql-table://h//app
same mysql-table "mysql:///app?socket=/run/s" "mysql-table:///app?socket=/run//s"
! built_in redis || refuses 64 "--shard: shard 1 of 1: bad database in the URL" --shard redis://h/-0
! built_in redlock || refuses 64 "--shard: shard 1 of 1: redis 127.1:6379 stands twice" --shard redlock://127.0.0.1,127.1,h

# in_profile TEXT PROFILE-LINE...
in_profile() {
  local text=$1
  shift
  printf '%s\n' '{"backends": {' '"db": {' "$@" '}}}' >config.json
  refuses 78 "$text" --config "$tmp/config.json" -b db
}
at=$tmp/config.json
in_profile "$at:2: profile \"db\" has no \"url\"" '"ttl": 5'
in_profile "$at:4: profile \"db\" has both \"url\" and \"shards\"" "\"url\": \"$a\"," "\"shards\": [\"$b\"]"
in_profile "$at:3: shards: shard 2 of 2 is the same database as shard 1" "\"shards\": [\"$a\"," "\"$a\"]"
in_profile "$at:4: shards: shard 2 of 2 must be a URL" '"ttl": 5,' "\"shards\": [\"$a\", \"db\"]"
in_profile "$at:4: servers: the URLs of $at:3: shards name their servers" \
  '"shards": ["redis://h1", "redis://h2"],' '"servers": "h3"'
in_profile "$at:3: is nested too deeply" "\"shards\": [[\"$a\"]]"
in_profile "$at:3: \"shards\" is empty" '"shards": []'
in_profile "$at:3: unknown key \"shard\" in a profile" "\"shard\": \"$a\""
printf '%s\n' '{"backends": {"db": {"shards":' '["redis://h1", "redis://u:hunter2@h2"]}}}' >config.json
chmod 644 config.json
refuses 78 "$at: holds a password, and others can read it" --config "$at" -b db

# On the command line it is taken, with a warning; what is said of the shard does not show it.
expect_status 69 "$DLOCK" list --shard redis://u:hunter2@127.0.0.1:1,redis://127.0.0.1:2 2>err
assert_contains "$(<err)" "can read the password in --shard with ps; DLOCK_SHARDS"
assert_lacks "$(<err)" hunter2
