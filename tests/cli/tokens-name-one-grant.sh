#!/usr/bin/env bash
# "dlock renew" and "dlock release" touch the grant that the token names, and no other; the token comes from a file
# that nobody else can read, or from the environment of acquire and run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
"$DLOCK" acquire -k job --ttl 10m >job.token
"$DLOCK" acquire -k other --ttl 10m >other.token
"$DLOCK" acquire -k a -k b --ttl 10m >both.tokens
chmod 600 ./*.token ./*.tokens
job=$(<job.token) other=$(<other.token)
zeros=00000000000000000000000000000000
holder="held by $(id -un) on $(uname -n) (bash), for "

# refuses STATUS TEXT COMMAND...: one line that has TEXT, and all locks are as before.
refuses() {
  local want=$1 text=$2 got=0
  shift 2
  "$DLOCK" "$@" >out 2>err || got=$?
  assert_equal "$want" "$got" "exit status of dlock $* ($(<err))"
  assert_equal "1/" "$(wc -l <err)/$(<out)" "lines on stderr, and stdout, of dlock $* ($(<err))"
  assert_contains "$(<err)" "$text" "stderr of dlock $*"
  assert_lacks "$(<err)" "$job" "a token in a message"
  for key in job other a b; do assert_held "$key" 2>/dev/null; done
}
both_refuse() { # STATUS-OF-RENEW STATUS-OF-RELEASE TEXT ARGUMENTS...
  local renew=$1 release=$2
  shift 2
  refuses "$renew" "$1" renew "${@:2}"
  refuses "$release" "$1" release "${@:2}"
}

# Wrong tokens.
for token in x "${job^^}" "${job%:*}0" "${job}x" "${job:1}" " $job" "$holder"; do
  both_refuse 1 1 "\"job\" is $holder" -q -k job --token-file "$(token_file "$token")"
  assert_contains "$(<err)" 'the text given for "job" is not a lock id, which begins with 32 hexadecimal digits'
done
both_refuse 79 1 "this lock id does not hold it any more (released, expired or broken); it is $holder" -q -k job --token-file "$(token_file $zeros)"
both_refuse 79 1 "this lock id does not hold it any more (released, expired or broken); it is $holder" -q -k job --token-file "$(token_file "$other")"
both_refuse 79 1 "it is free in ${redis_url[a]}/0" -q -k free --token-file "$(token_file "$job")"
assert_contains "$(<err)" '"free" was not released: '
refuses 79 'lost "free": ' renew -q -k free --token-file "$(token_file "$job")"
both_refuse 64 64 '--token-file: a lock id is empty' -q -k job -k other --token-file "$(token_file "$job" '')"

# That of a run, and of another program.
for command in renew release; do
  expect_status 1 "$DLOCK" run -q -k run -- "$DLOCK" "$command" -k run >out 2>err
  assert_contains "$(<err)" 'the lock id of "run" is that of a dlock run, which renews and releases the lock itself: '
done
rcli a set dlock:foreign $zeros px 600000 >/dev/null
both_refuse 1 1 'the lock id of "foreign" is that of another program' -q -k foreign --token-file "$(token_file $zeros)"

# A file.
: >empty.token
chmod 600 empty.token
both_refuse 64 64 '--token-file: missing: no such file' -k job --token-file missing
both_refuse 64 64 '--token-file: empty.token is empty; did dlock acquire fail?' -k job --token-file empty.token
both_refuse 64 64 '--token-file: give one lock id for each --key, in the same order; here are 2 lock ids for 1 key' -k a --token-file both.tokens
both_refuse 64 64 '--token-file: give one lock id for each --key, in the same order; here are 1 lock id for 2 keys' -k job -k other --token-file job.token
both_refuse 64 64 '--token-file: .: is not a regular file' -k job --token-file .
for mode in 640 604 660; do
  chmod $mode job.token
  both_refuse 64 64 'run: chmod go-' -k job --token-file job.token
done
chmod 600 job.token

# The environment.
both_refuse 64 64 'the lock id of "job" is missing: give it with --token-file, or set DLOCK_KEY and DLOCK_TOKEN' -k job
export DLOCK_TOKEN=$job
both_refuse 64 64 'the lock id of "job" is missing' -k job
DLOCK_KEY=Job both_refuse 64 64 'the lock id of "job" is missing' -k job
DLOCK_KEYS=$'other\nJob' DLOCK_TOKENS=$other$'\n'$job both_refuse 64 64 'the lock id of "job" is missing' -k job
DLOCK_KEYS=$'other\njob' DLOCK_TOKENS=$other both_refuse 64 64 'the lock id of "job" is missing' -k job
DLOCK_KEY=job expect_status 0 "$DLOCK" renew -k job
DLOCK_KEY=other DLOCK_KEYS=$'other\njob' DLOCK_TOKENS=$other$'\n'$job expect_status 0 "$DLOCK" renew -k job
DLOCK_KEY=job both_refuse 79 1 'this lock id does not hold it any more' -k job --token-file other.token
unset DLOCK_TOKEN

# Several: in pairs, in their order; all are tried.
expect_status 79 "$DLOCK" renew -q -k job -k other --token-file "$(token_file "$other" "$job")" 2>err
assert_equal 2 "$(wc -l <err)"
expect_status 79 "$DLOCK" renew -q --json -k free -k other -k job --token-file "$(token_file $zeros "$other" x)" >out 2>err
assert_equal "1/2" "$(grep -c "\"key\":\"other\",\"token\":\"$other\"" out)/$(wc -l <err)"
expect_status 0 "$DLOCK" release -k a -k b --token-file both.tokens
expect_status 1 "$DLOCK" release -q -k free -k other --token-file "$(token_file $zeros "$other")" 2>err
assert_free other
expect_status 0 "$DLOCK" release -k job --token-file job.token 2>err
assert_equal '' "$(<err)"
for key in job a b; do assert_free $key; done
