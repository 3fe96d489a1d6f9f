#!/usr/bin/env bash
# Each key is in one shard, whatever the order of the list and wherever that stands: those who name the
# same shards exclude each other, a nested run finds the lock of the job above it, and the list has all.
. "$(dirname "$0")/lib.sh"
need python3
cd "$tmp"
export DLOCK_BACKEND=db DLOCK_CONFIG=$tmp/list
umask 077
mkdir a b c
a=file://$tmp/a b=file://$tmp/b c=file://$tmp/c
shards list "$a,$b,$c"

# No shard is left out, and no key is in two.  The path of this test, which is random, decides where a key
# is: of 80 keys none is in one of the shards once in 10^14 times.
keys=(job nightly-report a b c tenant/42)
for key in "${keys[@]}" more-{1..74}; do "$DLOCK" run -k "$key" -- true; done
for dir in a b c; do [[ -n $(ls "$dir") ]] || fail "shard $dir has no key"; done
assert_equal 80 "$(find a b c -type f ! -name '.*' | wc -l)" "lock files in all"

# Two processes with the list in another order, from another place.
shards other "$c" "$a" "$b"
shards third "$b" "$c,$a"
shards fourth "$b/,file://$tmp//./a,file:///.$tmp/c"
for key in "${keys[@]}"; do
  "$DLOCK" run -k "$key" -- sh -c 'touch held; until test -e go; do sleep 0.01; done' &
  wait_until 30 test -e held
  for same in other third fourth; do
    expect_status 75 "$DLOCK" run -q -n --config $same -k "$key" -- true
  done
  touch go
  wait "$!"
  rm held go
done

# A waiter gets it when the holder is done; counted, nothing is lost.
echo 0 >counter
for i in 1 2 3 4; do
  for ((n = 0; n < 10; ++n)); do
    "$DLOCK" run -k counter -- sh -c 'n=$(cat counter); echo $((n + 1)) >counter'
  done &
  pids[i]=$!
done
for i in 1 2 3 4; do wait "${pids[i]}"; done
assert_equal 40 "$(<counter)" "the counter"

# Nested: held by the job above, with the same token.
for key in job a b c; do
  "$DLOCK" run -k "$key" -- sh -c 'outer=$DLOCK_TOKEN
    inner=$(DLOCK_CONFIG=other "$DLOCK" run -n -k "$DLOCK_KEY" -- sh -c "echo \$DLOCK_TOKEN")
    [ "$outer" = "$inner" ]' || fail "a nested run on $key does not find the lock of the job above it"
done

# list has all, by key; show, force-release and the messages of run name the one shard.
for key in job a b c; do
  "$DLOCK" run -v --status-file "$key.status" -k "$key" -- sh -c "touch $key.held; sleep 1000" 2>"$key.err" &
  wait_until 30 test -e "$key.held"
done
assert_equal "a b c job" "$("$DLOCK" list --output key | tail -n +2 | xargs)" "the list"
assert_equal "$a + $b + $c" "$("$DLOCK" list --json | python3 -c '
import json, sys
document = json.load(sys.stdin)
assert [lock["key"] for lock in document["locks"]] == ["a", "b", "c", "job"], document
assert "missing" not in document, document
print(document["backend"])')" "the backend in the list"
[[ $("$DLOCK" show job | sed -n 2p) =~ ^'  Backend   '("$a"|"$b"|"$c")' (profile db)'$ ]] ||
  fail "show does not name the shard: $("$DLOCK" show job)"
its=${BASH_REMATCH[1]}
[[ -e ${its#file://}/job ]] || fail "show names $its, and there is no lock file of job"
assert_contains "$(<job.err)" "the shard of \"job\" is $its, one of 3"
assert_contains "$(<job.err)" "acquired \"job\" from $its, fencing number"
"$DLOCK" force-release --yes job 2>/dev/null
wait_until 30 test -e job.status
assert_equal "$its" "$(python3 -c 'import json; print(json.load(open("job.status"))["backend"])')" \
  "the backend in the status file"
expect_status 1 "$DLOCK" show job >shown
assert_equal "job: free   Backend   $its (profile db)" "$(head -n 2 shown | paste -sd ' ')" "show of a free lock"

# Who has another list takes a lock elsewhere: the list says so.
"$DLOCK" list >/dev/null 2>err
assert_equal "" "$(<err)" "stderr of a list without strays"
for one in "$a" "$b" "$c"; do
  [[ $one != "$its" ]] || continue
  shards stray "$one"
  "$DLOCK" run --config stray -k job -- sh -c "touch stray.held; sleep 1000" 2>/dev/null &
  wait_until 30 test -e stray.held
  "$DLOCK" list >out 2>err
  assert_contains "$(<err)" "\"job\" is in $one, which by this list is not the shard"
  assert_contains "$(<out)" job "the list"
  break
done
