#!/usr/bin/env bash
# A shard that is down takes its own keys with it and nothing else: it is not even asked about others.
# The list shows what it can, says what is missing, and its exit status is not that of success.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need python3
cd "$tmp"
unset DLOCK_BACKEND

start_redis a
start_redis b
start_redis c
cat >config.json <<JSON
{"connect_timeout": "2s",
 "backend": "db",
 "backends": {"db": {
   "shards": ["${redis_url[a]}", "${redis_url[b]}", "${redis_url[c]}"]}}}
JSON
chmod 600 config.json
export DLOCK_CONFIG=$tmp/config.json

# One held key in each shard: ${of[NAME]}.
declare -A of=() pid=()
for ((i = 0; ${#of[@]} < 3; ++i)); do
  ((i < 1000)) || fail "1000 keys leave a shard without any: ${!of[*]}"
  location=$("$DLOCK" show "key-$i" || (($? == 1)))  # free
  for name in a b c; do
    [[ $location == *": free"*"  Backend   ${redis_url[$name]}/0"* && -z ${of[$name]-} ]] || continue
    of[$name]=key-$i
    "$DLOCK" run -k "key-$i" --ttl 20 -- sh -c "touch $name.held; until test -e go; do sleep 0.02; done" 2>"$name.err" &
    pid[$name]=$!
    wait_until 30 test -e "$name.held"
  done
done
for name in a b c; do
  assert_equal 1 "$(rcli "$name" exists "dlock:${of[$name]}")" "the lock in its shard"
done
all=$(printf '%s\n' "${of[@]}" | sort | xargs)
assert_equal "$all" "$("$DLOCK" list --output key | tail -n +2 | xargs)" "the list of all"

stop_redis b
mapfile -t others < <(printf '%s\n' "${of[a]}" "${of[c]}" | sort)
expect_status 69 "$DLOCK" list --output key >out 2>err
assert_equal "${others[*]}" "$(tail -n +2 out | xargs)" "the list without b"
assert_equal 1 "$(wc -l <err)" "lines on stderr"
assert_contains "$(<err)" "the locks of shard ${redis_url[b]}/0 are missing: "
assert_contains "$(<err)" "connection refused"
expect_status 69 "$DLOCK" list -q >out 2>err
assert_contains "$(<err)" "are missing" "what even -q does not silence"
expect_status 69 "$DLOCK" list --json >out 2>/dev/null
python3 - out "${redis_url[b]}/0" "${others[@]}" <<'PY'
import json, sys
document = json.load(open(sys.argv[1]))
assert [lock['key'] for lock in document['locks']] == sys.argv[3:], document
assert len(document['missing']) == 1 and sys.argv[2] in document['missing'][0], document
PY
expect_status 69 "$DLOCK" list nothing-begins-so >out 2>err
assert_equal "" "$(<out)"
assert_lacks "$(<err)" "no locks" "what is said where some may be missing"

# Its own keys: each command says which shard it is.
for command in show force-release; do
  arguments=("$command")
  [[ $command == show ]] || arguments+=(--yes)
  expect_status 69 "$DLOCK" "${arguments[@]}" "${of[b]}" 2>err
  assert_contains "$(<err)" "127.0.0.1:${redis_port[b]}: connection refused"
  assert_contains "$(<err)" "this is the shard of \"${of[b]}\", one of 3"
done
try 69 -k "${of[b]}" --status-file status -- true
assert_contains "$(<err)" "this is the shard of \"${of[b]}\", one of 3"
python3 -c 'import json, sys; status = json.load(open("status"))
assert (status["outcome"], status["backend"]) == ("unreachable", sys.argv[1]), status' "${redis_url[b]}/0"

# The job whose lock was there is ended, as by any server that forgets; the others go on.
restart_redis b
wait_until 60 gone "${pid[b]}"
expect_status 79 wait "${pid[b]}"
for name in a c; do
  ! gone "${pid[$name]}" || fail "the job with a lock in $name has ended: $(<"$name.err")"
done

# Nobody asks b about keys of the others.  Each count is a connection itself.
connections() { rcli b info stats | tr -d '\r' | sed -n 's/^total_connections_received://p'; }
before=$(connections)
for name in a c; do
  expect_status 75 "$DLOCK" run -n -k "${of[$name]}" -- true 2>err
  "$DLOCK" show "${of[$name]}" >out
  assert_contains "$(<out)" "  Backend   ${redis_url[$name]}/0 (profile db)"
  "$DLOCK" force-release --yes "${of[$name]}" 2>err
  wait_until 60 gone "${pid[$name]}"
  expect_status 79 wait "${pid[$name]}"
  "$DLOCK" run -k "${of[$name]}" -- true
done
assert_equal "$((before + 1))" "$(connections)" "connections to a shard that nobody needs"
"$DLOCK" list 2>/dev/null
(($(connections) > before + 2)) || fail "list does not ask b either"

# One that is silent is waited for no longer than --connect-timeout.
pause_redis b
expect_status 69 "$DLOCK" list >out 2>err
assert_contains "$(<err)" "the locks of shard ${redis_url[b]}/0 are missing: "
resume_redis b

# All of them down: an error and nothing else.
for name in a b c; do stop_redis "$name"; done
expect_status 69 "$DLOCK" list --json >out 2>err
assert_equal "" "$(<out)"
for name in a b c; do assert_contains "$(<err)" "127.0.0.1:${redis_port[$name]}"; done
