#!/usr/bin/env bash
# "dlock complete" offers commands, options, values and the keys of locks that are held; it is quick or gives no answer, and
# is silent about mistakes.
. "$(dirname "$0")/lib.sh"
need python3
. "$TEST_SOURCE/tests/cli/ports.sh"
cd "$tmp"

# answer WORD...: what is printed for these words, in ./out; nothing else is, and the status is 0.
answer() {
  local status=0
  "$DLOCK" complete -- "$@" >out 2>err </dev/null || status=$?
  assert_equal '0 ' "$status $(<err)" "status and messages for $*"
}

expect() { # the values, space-separated, then the words
  local want=$1
  shift
  answer "$@"
  assert_equal "$want" "$(cut -f 1 out | paste -sd ' ')" "what is offered for $*"
}

expect_text() { # the whole answer, then the words
  local want=$1
  shift
  answer "$@"
  assert_equal "$want" "$(<out)" "the answer for $*"
}

# Commands and options.
expect_text $'run\thold a lock while a command runs' ru
expect 'run once list show watch force-release doctor acquire renew release backends id help version' ''
expect '--help --version' -
expect 'version' help ver
expect '' help run ''
expect '' nonsense ''
expect ''
expect_text $'--on-lost\twhat to do with the command if the lock is lost' run --on-l
answer run ''
assert_contains "$(<out)" $'\n--wait\t'
assert_lacks "$(<out)" $'\n--prefix\t' 'hidden options that nobody asked for'
expect '--prefix' run --pre
expect '--json' backends --j
expect '-b' run -b
expect '' run -n --wai  # they exclude each other
expect '' run --ttl 1m --tt
expect '--server' run -S a --serv

# Values.
expect 'term kill ignore' run --on-lost ''
expect '--on-lost=kill' run --on-lost=k
expect '--export=sh --export=fish' acquire --export=
expect 'redis redlock' run -qb red
expect '-bfile' run -bf
expect 'file redis redlock zookeeper mysql postgres' run -b ''
expect 'mysql postgres' backends --schema ''
expect 'key,host' list -o key,ho
expect_text $'\tfiles' run --status-file x
expect_text $'\tfiles' run --config=
expect_text $'\tcommand 5' run -k job -- make --on-l
expect_text $'\tcommand 4' once --reset -- ''

# Profiles come first.  A name with a character that hides or reorders text is left out.
echo '{"backends": {"files": {"url": "file://'"$locks"'"}, "other": {"url": "file:///nowhere"},
  "a\u202eb": {"url": "redis://h"}, "\u200b": {"url": "redis://h"}}}' >config.json
chmod 600 config.json
cp config.json home/config.json
expect 'files other file redis redlock zookeeper mysql postgres' run --config config.json -b ''
# shellcheck disable=SC2088  # a shell does not expand it before the command runs
expect 'files file' run --config '~/config.json' -b 'fi'
DLOCK_CONFIG=config.json expect 'other' run -b o

# Keys.
# shellcheck disable=SC2016  # it is not to be expanded
"$DLOCK" run -q -k nightly/a -k nightly/b -k --x -k $'a\u202eb' -k 'two words' -k '$(touch ran)' -- sh -c 'touch held; exec sleep 1000' &
wait_until 30 test -e held
answer show nightly/a
assert_equal "$(printf 'nightly/a\theld by %s on %s' "$(id -un)" "$(hostname)")" "$(<out)"
# shellcheck disable=SC2016  # it is not to be expanded
expect '$(touch ran) nightly/a nightly/b two words' show ''
expect '' show nightly/a ''
expect 'nightly/b' list nightly/a nightly/b
expect 'nightly/a nightly/b' watch ni
expect 'free' watch --exit-when ''
expect '--x' force-release -- -
expect '--x' release -k --
expect '--key=nightly/a --key=nightly/b' renew --key=ni
expect 'nightly/a nightly/b' run -q -k ni
expect 'two words' acquire --config config.json -b files -k tw
expect '' acquire --config config.json -b other -k tw
[[ ! -e ran ]] || fail "a key was run"

# Mistakes.
echo '{' >config.json
expect 'file' run --config config.json -b 'fi'
expect '' run --config config.json -k ''
expect '' run --config missing -k ''
expect '' show --nonsense -b nothing ''
expect '' show -b redis:/u:secret@h ''
DLOCK_SERVER=a DLOCK_SERVERS=b expect '' show ''

# A server that never answers, one that is down, a file without an end; each with a wide margin.
reserve_port down
nobody=redis://127.0.0.1:${down:?}
python3 -c 'import socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
time.sleep(1000)' >port &
wait_until 30 test -s port
mkfifo -m 600 pipe
silent=redis://user:secret@127.0.0.1:$(<port)
for where in "-b$silent" "-b$nobody" "-bredlock://127.0.0.1:$(<port),${nobody#*//}" \
  "-bzookeeper://127.0.0.1:$(<port)" "-bmysql://u@127.0.0.1:$(<port)/db" --config=pipe; do
  before=$(now_ms)
  expect '' show "$where" ''
  took=$(($(now_ms) - before))
  ((took <= $(here 1000))) || fail "no answer for $where took $took ms"
done
DLOCK_VERBOSE=2 expect '' show "-b$silent" ''

# A server that is slow: the shell is not held up, and the connection is not broken off, which some servers count.
python3 -c 'import select, socket, time
s = socket.create_server(("127.0.0.1", 0))
print(s.getsockname()[1], flush=True)
client = s.accept()[0]
client.recv(1000)
time.sleep(0.6)
gone = select.select([client], [], [], 0)[0] and not client.recv(1, socket.MSG_PEEK)
print("gone" if gone else "there", flush=True)' >slow &
wait_until 30 test -s slow
expect '' show "-bredis://127.0.0.1:$(<slow)" ''
wait_until 30 grep -q e slow
assert_equal there "$(tail -n 1 slow)" "the client of a slow server"
