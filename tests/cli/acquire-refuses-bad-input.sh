#!/usr/bin/env bash
# What dlock acquire, renew and release cannot do ends in the right status, with one line on stderr and nothing on
# stdout, and takes no lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
# refuses STATUS TEXT ARGUMENTS...
refuses() {
  local want=$1 text=$2 got=0
  shift 2
  timeout -s KILL 60 "$DLOCK" "$@" >out 2>err </dev/null || got=$?
  assert_equal "$want" "$got" "exit status of dlock $* ($(<err))"
  assert_equal "1/" "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of dlock $* ($(<err))"
  assert_contains "$(<err)" "$text" "stderr of dlock $*"
}

# Keys, as those of run.
for command in 'acquire --ttl 1m' renew release; do
  read -ra words <<<"$command"
  refuses 64 "which lock? name it: dlock ${words[0]} --key NAME; see: dlock help ${words[0]}" "${words[@]}"
  refuses 64 'the key is empty' "${words[@]}" -k ''
  refuses 64 'holds a control character' "${words[@]}" -k $'a\nb'
  refuses 64 '--key "a" is given twice' "${words[@]}" -k a -k b -k a
  mapfile -t many < <(printf -- '--key=%d\n' {1..65})
  refuses 64 '--key is given 65 times; the most is 64' "${words[@]}" "${many[@]}"
  refuses 64 'unexpected "more"' "${words[@]}" -k job more
  refuses 64 'unknown option "-E"' "${words[@]}" -k job -E 3
  refuses 64 'unknown option "--max-hold"' "${words[@]}" -k job --max-hold 3
done

# For how long.
refuses 64 'for how long? add --ttl DURATION' acquire -k job
DLOCK_TTL=1m refuses 64 'DLOCK_TTL is not used here: say --ttl on the command line' acquire -k job
echo '{"ttl": "1m"}' >config.json
chmod 600 config.json
refuses 64 'config.json:1: ttl is not used here' acquire -k job --config config.json
refuses 64 '--ttl: cannot be combined with --while' acquire -k job --ttl 1m --while $$
refuses 64 '--ttl: "0" is out of range; it must be from 1s to 24h' acquire -k job --ttl 0
refuses 64 '--ttl: "soon"' acquire -k job --ttl soon
for flag in --kill-after=1 --on-lost=kill; do
  refuses 64 "${flag%=*}: needs --while" acquire -k job --ttl 1m "$flag"
done
refuses 64 '--kill-after: must be less than half of the ttl, which is 30s' acquire -k job --while $$ --kill-after 15
for backend in file zookeeper://h mysql-row://h/db; do
  refuses 64 "the ${backend%%:*} backend cannot keep a lock without a " acquire -k job --ttl 1m --backend "$backend"
  refuses 64 "the ${backend%%:*} backend cannot keep a lock without a " acquire -k job --backend "$backend"
done
# What is set for runs does no harm.
DLOCK_KILL_AFTER=9h DLOCK_ON_LOST=kill DLOCK_MAX_HOLD=1 DLOCK_CONFLICT_EXIT_CODE=9 "$DLOCK" acquire -k other --ttl 1m >out

# The process of --while.
for pid in 0 -1 4194305 x '' 1.5 '$$'; do
  refuses 64 "--while: \"$pid\" is not a number from 1 to 4194304" acquire -k job --while "$pid"
done
sleep 600 &
other=$!
refuses 64 "--while $other: dlock was not started below this process" acquire -k job --while $other
kill -KILL $other
wait $other 2>/dev/null || true
refuses 64 "--while $other: there is no such process" acquire -k job --while $other
refuses 64 '--while 1: ' acquire -k job --while 1

# What is printed.
expect_status 64 "$DLOCK" acquire -k job --ttl 1m --export=sh --json >out 2>err
assert_contains "$(<err)" '--export: cannot be combined with --json'

# Neither variables nor the config file say what belongs to one grant.
DLOCK_WHILE=$$ refuses 64 'for how long?' acquire -k job
DLOCK_TOKEN_FILE=token refuses 64 'the token of "job" is missing' renew -k job
for name in while export token token_file; do
  echo "{\"$name\": \"1\"}" >config.json
  refuses 78 "$name" acquire -k job --ttl 1m --config config.json
done
DLOCK_EXPORT=fish "$DLOCK" acquire -k third --ttl 1m >out
assert_lacks "$(<out)" 'set -gx' "what DLOCK_EXPORT does"

assert_free job
