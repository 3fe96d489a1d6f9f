#!/usr/bin/env bash
# A server that stops for less than the margin costs a warning; one that stops for longer, comes back
# without the lock, or loses it, ends the job before anybody else can hold the lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/trouble.sh"
cd "$tmp"

start_redis a
export DLOCK_BACKEND=${redis_url[a]}

# hold TTL COMMAND...: a job under the lock, which has just been renewed; its stderr goes to err.
hold() {
  run_job "$@"
  just_renewed
}
# The server's end of the lease has just moved.
just_renewed() {
  local before now
  before=$(rcli a pttl dlock:job)
  while now=$(rcli a pttl dlock:job); ((now <= before)); do
    before=$now
    sleep 0.005
  done
}

what='the server stops for less than the margin'
hold 6s ./job.sh 7
pause_redis a
wait_until 6 one_warning
resume_redis a
wait_until 6 grep -q 'renewed "job" again' err
touch go
job_ends 7 "$what"
outcome_is completed "$what"
assert_equal 1 "$(warnings)" "warnings when $what ($(<err))"
assert_equal 2 "$(wc -l <err)" "lines on stderr when $what ($(<err))"
assert_contains "$(<err)" "redis 127.0.0.1:${redis_port[a]}: no answer within" "stderr when $what"

what='the server stops for longer'
hold 4s ./stubborn.sh
end=$(($(now_ms) + $(rcli a pttl dlock:job)))  # the lease ends then, or later
pause_redis a
flock oracle true  # until the last of them is dead
died=$(now_ms)
((died < end)) || fail "the last of the tree died $((died - end)) ms after the end of the lease"
echo "$what: the tree is dead $((end - died)) ms before the end of the lease"
job_ends 79 "$what"
outcome_is lost "$what"
assert_contains "$(<err)" 'lost "job"' "stderr when $what"
assert_contains "$(<err)" 'ending ./stubborn.sh' "stderr when $what"
assert_equal 1 "$(warnings)" "warnings when $what ($(<err))"
resume_redis a
rcli a flushall >/dev/null

# lost WHAT: the holder ends with 79 within about a renewal's time, of which there are three per ttl.
lost() {
  local begun
  begun=$(now_ms)
  job_ends 79 "$1"
  (($(now_ms) - begun < 4000)) || fail "it took $(($(now_ms) - begun)) ms to notice that $1"
  echo "$1: noticed after $(($(now_ms) - begun)) ms"
  outcome_is lost "$1"
  assert_contains "$(<err)" 'lost "job"' "stderr when $1"
  assert_equal 1 "$(grep -vc 'cannot renew' err)" "lines on stderr when $1 ($(<err))"
}

hold 6s sh -c 'touch started; exec sleep 1000'
restart_redis a
lost 'the server comes back empty'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a lock is there after the server came back empty"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a flushall >/dev/null
lost 'everything is deleted'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a deleted lock is there again"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a del dlock:job >/dev/null
lost 'the lock is deleted'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a deleted lock is there again"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a set dlock:job theirs px 60000 >/dev/null
lost 'somebody else writes there'
assert_equal theirs "$(rcli a get dlock:job)" "the lock of somebody else"
(($(rcli a pttl dlock:job) > 40000)) || fail "the time of somebody else's lock was changed"
rcli a flushall >/dev/null

what='the lock is made endless'
hold 3s ./job.sh
rcli a persist dlock:job >/dev/null
has_ttl() { (($(rcli a pttl dlock:job) > 0)); }
wait_until 10 has_ttl
touch go
job_ends 0 "$what"
assert_contains "$(<err)" '(PERSIST)' "stderr when $what"
assert_equal 1 "$(wc -l <err)" "lines on stderr when $what ($(<err))"

what='the server is restarted with its data'
rcli a config set appendfsync always >/dev/null
rcli a config set appendonly yes >/dev/null
sed -i 's/^appendonly no/appendonly yes/' "${redis_dir[a]}/redis.conf"
saves() { rcli a info persistence | grep -q '^aof_rewrite_in_progress:0' && [[ -d ${redis_dir[a]}/appendonlydir ]]; }
wait_until 20 saves
hold 6s ./job.sh
token=$(rcli a get dlock:job)
restart_redis a
assert_equal "$token" "$(rcli a get dlock:job)" "the lock after a restart"
just_renewed
touch go
job_ends 0 "$what"
outcome_is completed "$what"
