#!/usr/bin/env bash
# ctest: cost 10
# "dlock watch --all" watches each profile of the config.  One that is silent, refuses us, or has settings that are wrong
# neither hides the others nor holds them up.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need python3
cd "$tmp"
start_redis server
start_redis silent
start_redis denied requirepass secret
unset DLOCK_BACKEND
cat >config.json <<JSON
{"backends": {
  "here": {"url": "file://$locks"},
  "there": {"url": "${redis_url[server]}"},
  "silent": {"url": "${redis_url[silent]}", "connect_timeout": "3s"},
  "denied": {"url": "${redis_url[denied]}"},
  "wrong": {"url": "${redis_url[server]}", "password_file": "/nonexistent"}}}
JSON
chmod 600 config.json
export DLOCK_CONFIG=$tmp/config.json
pause_redis silent

for profile in here there; do
  "$DLOCK" run -q -b $profile -k job -- sh -c "touch $profile; until test -e go; do sleep 0.02; done" &
  jobs+=($!)
  wait_until 30 test -e $profile
done
start=$(now_ms)
"$DLOCK" watch --all --json --interval 1 >objects 2>err &
watch=$!
"$DLOCK" watch --all --interval 1 >lines 2>/dev/null &
lines=$!
both() { [[ $(grep -c '"present"' objects) == 2 ]]; }
wait_until 30 both
took=$(($(now_ms) - start))
((took < $(here 2500))) || fail "the others came after $took ms"
synced() { grep -q synced objects; }
wait_until 30 synced
[[ $(tail -n 1 objects) == *synced* ]] || fail "not at the end: $(<objects)"
for profile in here there; do
  grep -q "\"event\":\"present\",\"profile\":\"$profile\",\"key\":\"job\"" objects || fail "no $profile: $(<objects)"
  grep -q "  present  $profile  job  " lines || fail "no $profile: $(<lines)"
done
said() { [[ $(<err) == *"${redis_port[silent]}"* ]]; }
wait_until 30 said
assert_contains "$(<err)" /nonexistent
assert_contains "$(<err)" "${redis_port[denied]}"

# The one that was silent is there when it answers.
resume_redis silent
"$DLOCK" run -q -b silent -k late -- sh -c 'until test -e go; do sleep 0.02; done' &
jobs+=($!)
late() { grep -q '"profile":"silent","key":"late"' objects; }
wait_until 30 late
touch go
wait "${jobs[@]}"
are_gone() { [[ $(grep -c '"event":"gone"' objects) == 3 ]]; }
wait_until 30 are_gone
kill -TERM "$watch" "$lines"
expect_status 0 wait "$watch"

expect_status 64 "$DLOCK" watch --all -b here 2>err
assert_contains "$(<err)" '--all: cannot be combined with --backend'
expect_status 78 "$DLOCK" watch --all --config '' 2>err
assert_contains "$(<err)" 'no config file names a backend'
