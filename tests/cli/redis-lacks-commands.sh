#!/usr/bin/env bash
# A Redis without some commands (Envoy, twemproxy, rename-command, a user without the right): what can be done without
# them is done, with the same status; the rest is refused by name.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
cd "$tmp"

# waits_by_asking WORDS: with $DLOCK_BACKEND and nobody that calls, what waits is told so once, with these words, and
# waits; what does not get the lock ends as with any server.
waits_by_asking() {
  hold "${@:2}" 2>holder.err
  expect_status 75 "$DLOCK" run -q -n -k job -- touch ran
  expect_status 5 "$DLOCK" run -q -w 0.3 -E 5 -k job "${@:2}" -- touch ran 2>err
  assert_equal "" "$(<err)" "stderr with -q"
  [[ ! -e ran ]] || fail "two at once"
  expect_status 75 "$DLOCK" run -w 2 -k job -- touch ran 2>err
  assert_equal 1 "$(grep -c 'by asking again twice a second: .*'"$1" err)" "times that it is said why ($(<err))"
  assert_lacks "$(<err)" TLS "what is said"
  assert_lacks "$(<err)" "Redis 5" "what is said"
  "$DLOCK" run -q -w 60 -k job -- true &
  local waiter=$!
  rm -f signalled
  "$DLOCK" run -w 60 -k job -- true 2>signalled &
  local other=$!
  wait_until 20 grep -q 'twice a second' signalled
  kill -TERM "$other"
  expect_status 143 wait "$other"
  release
  expect_status 0 wait "$waiter"
  assert_equal "" "$(<holder.err)" "what the holder says"
}

start_redis mute rename-command 'SUBSCRIBE ""'
export DLOCK_BACKEND=${redis_url[mute]}
waits_by_asking "lacks a command that dlock uses .*SUBSCRIBE"
hold --ttl 3s  # a force-release is noticed at the next renewal
expect_status 0 "$DLOCK" force-release -y job 2>out
expect_status 79 wait "$holder"

start_redis poor rename-command 'EVALSHA ""' rename-command 'CLIENT ""' rename-command 'PUBSUB ""' \
  rename-command 'SCAN ""' rename-command 'CONFIG ""' rename-command 'SCRIPT ""'
export DLOCK_BACKEND=${redis_url[poor]}
hold
expect_status 75 "$DLOCK" run -q -w 0.3 -k job -- true
expect_status 75 "$DLOCK" run -q -n -k BUSY --shared -k job -- true
"$DLOCK" show job >out
assert_contains "$(<out)" job "show"
expect_status 64 "$DLOCK" list 2>err
assert_contains "$(<err)" "SCAN" "what list says"
assert_contains "$(<err)" "dlock show KEY" "what list says"
release
expect_status 0 "$DLOCK" once -q -k job --every 1d -- true

# list sends a script by its text once, and from then on by its name.
start_redis nameless rename-command 'EVALSHA ""'
export DLOCK_BACKEND=${redis_url[nameless]}
"$DLOCK" run -q -k a -k b -k c -- "$DLOCK" list --json >out
assert_equal "a b c" "$(grep -o '"key": *"[^"]*"' out | cut -d'"' -f4 | xargs)" "locks that are listed"

start_redis scriptless rename-command 'EVAL ""' rename-command 'EVALSHA ""'
DLOCK_BACKEND=${redis_url[scriptless]} expect_status 64 timeout 20 "$DLOCK" run -w 60 -k BUSY -- touch ran 2>err
assert_equal 1 "$(wc -l <err)" "lines on stderr without EVAL"
assert_contains "$(<err)" "'EVAL'" "stderr without EVAL"
assert_contains "$(<err)" "see man dlock-redis" "stderr without EVAL"

# A proxy that passes no SUBSCRIBE, and ends the connection instead, or says nothing.
start_redis hidden
cat >proxy.py <<'PY'
import socket, sys, threading
server = socket.create_server(("127.0.0.1", int(sys.argv[1])), backlog=50)
def pump(source, target, refuses):
    try:
        while data := source.recv(65536):
            if refuses and any(lacking in data for lacking in (b"\nSUBSCRIBE\r", b"\nCLIENT\r", b"\nSCAN\r")):
                if len(sys.argv) > 3:
                    continue
                break
            target.sendall(data)
    except OSError:
        pass
    for side in (source, target):
        try:
            side.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
while True:
    client = server.accept()[0]
    redis = socket.create_connection(("127.0.0.1", int(sys.argv[2])))
    threading.Thread(target=pump, args=(client, redis, True), daemon=True).start()
    threading.Thread(target=pump, args=(redis, client, False), daemon=True).start()
PY
port=
reserve_port port
setpriv --pdeathsig KILL python3 proxy.py "$port" "${redis_port[hidden]}" &
export DLOCK_BACKEND=redis://127.0.0.1:$port
wait_until 20 "$DLOCK" run -q -k other -- true
waits_by_asking "CLIENT, PUBLISH or SUBSCRIBE was not answered"
expect_status 69 "$DLOCK" list 2>err
assert_contains "$(<err)" "a proxy may lack a command" "what list says"
port=
reserve_port port
setpriv --pdeathsig KILL python3 proxy.py "$port" "${redis_port[hidden]}" swallow &
export DLOCK_BACKEND=redis://127.0.0.1:$port
wait_until 20 "$DLOCK" run -q -k other -- true
hold
expect_status 75 "$DLOCK" run -q -w 1 -k job -- touch ran
expect_status 75 "$DLOCK" run -w 4 -k job -- touch ran 2>err
assert_equal 1 "$(grep -c 'by asking again twice a second: ' err)" "times that it is said why ($(<err))"
release

# Several servers behind such proxies.
servers=
for name in first second third; do
  start_redis "$name"
  port=
  reserve_port port
  setpriv --pdeathsig KILL python3 proxy.py "$port" "${redis_port[$name]}" swallow &
  servers+=${servers:+,}127.0.0.1:$port
done
export DLOCK_BACKEND=redlock://$servers
wait_until 20 "$DLOCK" run -q -k other -- true
hold
expect_status 75 "$DLOCK" run -q -n -k job -- touch ran
"$DLOCK" run -w 60 -k job -- true 2>err &
waiter=$!
wait_until 20 grep -q 'by asking again twice a second: ' err
release
expect_status 0 wait "$waiter"

# Several servers, none of which calls.
start_redis one rename-command 'SUBSCRIBE ""'
start_redis two rename-command 'SUBSCRIBE ""'
start_redis three rename-command 'SUBSCRIBE ""'
export DLOCK_BACKEND=redlock://127.0.0.1:${redis_port[one]},127.0.0.1:${redis_port[two]},127.0.0.1:${redis_port[three]}
waits_by_asking "lacks a command that dlock uses .*SUBSCRIBE"

# One of them that does call is found.
start_redis four
export DLOCK_BACKEND=redlock://127.0.0.1:${redis_port[four]},127.0.0.1:${redis_port[one]},127.0.0.1:${redis_port[two]}
hold
"$DLOCK" run -w 60 -k job -- true 2>err &
waiter=$!
wait_until 20 test -s err
release
expect_status 0 wait "$waiter"
assert_lacks "$(<err)" "twice a second" "stderr where one server calls"

# Nobody is called where PUBLISH is missing.
start_redis still rename-command 'PUBLISH ""'
export DLOCK_BACKEND=${redis_url[still]}
waits_by_asking "lacks a command that dlock uses .*PUBLISH"

# A right that is missing can be given: that is no lack.  EVALSHA is none that is needed.
start_redis strict
rcli strict acl setuser weak on '>pw' '~*' resetchannels +@all -evalsha >/dev/null
weak=weak:pw@127.0.0.1:${redis_port[strict]}
export DLOCK_BACKEND=redis://$weak
hold
expect_status 75 "$DLOCK" run -q -n -k job -- true
expect_status 77 "$DLOCK" run -w 60 -k job -- touch ran 2>err
assert_contains "$(<err)" "the user may not do this" "stderr without the channels"
release
# Of several servers another one is found.
rcli four acl setuser weak on '>pw' '~*' '&*' +@all >/dev/null
rcli still acl setuser weak on '>pw' '~*' resetchannels +@all >/dev/null
export DLOCK_BACKEND=redlock DLOCK_SERVERS=redis://$weak,redis://weak:pw@127.0.0.1:${redis_port[four]},redis://weak:pw@127.0.0.1:${redis_port[still]}
hold
expect_status 75 "$DLOCK" run -q -w 1 -k job -- true
"$DLOCK" run -w 60 -k job -- true 2>err &
waiter=$!
wait_until 20 test -s err
release
expect_status 0 wait "$waiter"
assert_lacks "$(<err)" "twice a second" "stderr where one server takes the subscription"

unset DLOCK_SERVERS

# Without the right to PUBLISH a waiter has a place in the queue all the same, and a holder hears of its force-release.
start_redis silent
rcli silent acl setuser weak on '>pw' '~*' '&*' +@all -publish >/dev/null
silent=127.0.0.1:${redis_port[silent]}
DLOCK_BACKEND=redis://$silent "$DLOCK" run -q -k queue -- sleep 60 &
first=$!
in_queue() { (($(rcli silent "$2" "$1" ) == $3)); }
wait_until 20 in_queue 'dlock:queue' exists 1
export DLOCK_BACKEND=redis://weak:pw@$silent
waits_by_asking "the user may not do this .*publish"
"$DLOCK" run -q -w 60 -k queue -- true &
second=$!
wait_until 20 in_queue '{dlock:queue}:queue' zcard 1
DLOCK_BACKEND=redis://$silent "$DLOCK" run -q -w 60 -k queue -- sleep 60 &
third=$!
wait_until 20 in_queue '{dlock:queue}:queue' zcard 2
kill "$first"
expect_status 143 wait "$first"
expect_status 0 wait "$second"
kill "$third"
wait "$third" || true
hold --ttl 60s
is_listening() { rcli silent pubsub channels '{dlock:job}*' | grep -q .; }
wait_until 40 is_listening
DLOCK_BACKEND=redis://$silent expect_status 0 "$DLOCK" force-release -y job 2>out
wait_until 10 gone "$holder"
expect_status 79 wait "$holder"
