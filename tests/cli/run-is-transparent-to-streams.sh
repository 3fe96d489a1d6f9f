#!/usr/bin/env bash
# The command reads, writes and is called as if dlock were not there: every byte of its streams and
# of its arguments is its own, and dlock keeps no end of a pipe open.
. "$(dirname "$0")/lib.sh"

cd "$tmp"
run=("$DLOCK" run --key job --)

# Streams.
assert_equal 7 "$(printf 'a\nb\0c\377\n' | "${run[@]}" wc -c)" "bytes that the command read on stdin"
assert_equal rest "$({ read -r _ && "${run[@]}" cat; } <<<$'first\nrest')" "what is left of stdin"

numbers() { seq 12400000; }  # 100 MB
"${run[@]}" cat < <(numbers) > >(cksum >through)
numbers | "${run[@]}" cat | cksum >piped
numbers | cksum >straight
wait_until 60 test -s through
assert_equal "$(<straight)" "$(<piped)" "100 MB through a pipe"
assert_equal "$(<straight)" "$(<through)" "100 MB from a file descriptor to a file descriptor"

both=$("${run[@]}" sh -c 'echo out; echo err >&2' 2>err)
assert_equal out "$both" "stdout"
assert_equal err "$(<err)" "stderr"

# dlock's own stdout is empty, also when it has much to say.
"$DLOCK" run -k other -- sh -c 'touch held; until test -e go; do sleep 0.01; done' &
holder=$!
wait_until 30 test -e held
got=0
out=$("$DLOCK" run -vv -k other -w 0.6 -- echo no 2>err) || got=$?
assert_equal 75 "$got" "status of a wait that runs out"
assert_equal '' "$out" "what dlock writes on stdout while it waits and when it gives up"
assert_contains "$(<err)" 'dlock: ' "stderr of dlock run -vv"
touch go
wait "$holder"
out=$("$DLOCK" run -vv -k other -- true 2>err)
assert_equal '' "$out" "what dlock run -vv writes on stdout"

# A pipe that the reader closes: SIGPIPE ends the command, and dlock passes that on.
statuses=$(
  set +e
  trap - ERR
  env --default-signal=PIPE "${run[@]}" yes 2>err | head -n 1
  echo "${PIPESTATUS[0]}"
)
assert_equal $'y\n141' "$statuses" "dlock run -- yes | head -n 1, and its status"

# A pipe that the command closes has ended, although dlock still runs.
mkfifo pipe
waits='until [[ -e go ]]; do sleep 0.01; done'
for fd in 1 3; do
  rm -f go
  eval "\"\${run[@]}\" bash -c 'echo said >&$fd; exec $fd>&-; $waits' $fd>pipe &"
  got=0
  said=$(timeout 60 cat pipe) || got=$?
  touch go
  assert_equal 0/said "$got/$said" "status and text of a reader of fd $fd, which the command closed"
  wait $!
done
rm -f go
"${run[@]}" bash -c "exec <&-; $waits" <pipe &
got=0
timeout 60 env --default-signal=PIPE yes >pipe 2>err || got=$?
touch go
assert_equal 141 "$got" "status of a writer into a stdin that the command has closed"
wait $!

# Arguments, byte by byte.
# shellcheck disable=SC1003,SC2016  # as they are
arguments=('' ' ' $'two\nlines\n' $'not \377\376 UTF-8' -- -k --key=x -n '*' '$HOME' "it's" '\' '' --)
printf '%s\0' "${arguments[@]}" >wanted
"${run[@]}" printf '%s\0' "${arguments[@]}" >got
cmp wanted got || fail "the command does not get its arguments byte by byte"
"${run[@]}" printf '%s\0' --help --version -h >got
cmp <(printf '%s\0' --help --version -h) got || fail "dlock takes options behind -- for its own"
mkdir bin
# shellcheck disable=SC2016  # for the script
printf '#!/bin/sh\nprintf "%%s\\n" "$#" "$@"\n' >bin/--
cp bin/-- bin/-odd
chmod +x bin/*
assert_equal $'2\n--\nx' "$(PATH=$tmp/bin:$PATH "${run[@]}" -- -- x)" "a command called --"
assert_equal $'1\nx' "$(PATH=$tmp/bin:$PATH "${run[@]}" -odd x)" "a command called -odd"
# argv[0] is the word that was given, not the path that was found.
assert_equal cat "$("${run[@]}" cat /proc/self/cmdline | head -z -n 1 | tr -d '\0')" "argv[0]"
