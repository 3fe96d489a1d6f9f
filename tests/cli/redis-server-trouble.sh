#!/usr/bin/env bash
# ctest: cost 25
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

hold 6s ./job.sh 7
survives_a_stop redis a "redis 127.0.0.1:${redis_port[a]}: no answer within"

hold 4s ./stubborn.sh
dies_of_a_stop redis a $(($(now_ms) + $(rcli a pttl dlock:job)))  # the lease ends then, or later
assert_equal 1 "$(warnings)" "warnings ($(<err))"
rcli a flushall >/dev/null

# gone_when WHAT: which is noticed within about a renewal's time, of which there are three per ttl.
gone_when() {
  lost 4000 "$1"
  assert_equal 1 "$(grep -vc 'cannot renew' err)" "lines on stderr when $1 ($(<err))"
}

hold 6s sh -c 'touch started; exec sleep 1000'
restart_redis a
gone_when 'the server comes back empty'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a lock is there after the server came back empty"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a flushall >/dev/null
gone_when 'everything is deleted'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a deleted lock is there again"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a del dlock:job >/dev/null
gone_when 'the lock is deleted'
assert_equal 0 "$(rcli a exists dlock:job)" "whether a deleted lock is there again"

hold 3s sh -c 'touch started; exec sleep 1000'
rcli a set dlock:job theirs px 60000 >/dev/null
gone_when 'somebody else writes there'
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
