#!/usr/bin/env bash
# ctest: cost 8
# A lease is healthy although the thread that is to renew it cannot be started, at the limit of processes: that is tried
# again until the margin, and the job goes on once there is room.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need setpriv prlimit
(($(id -u) == 0)) || skip "only root can become another user"
start_redis a
cd "$tmp"
cp "$DLOCK" dlock
chmod 0711 .
mkdir -m 0777 work
uid=$((60000 + $$ % 5000))  # of nobody else: the limit is that of a user

# The launcher, the supervisor and the job, and no thread.
as_user=(setpriv --reuid "$uid" --regid "$uid" --clear-groups)
# limited NAME TTL: a job that runs until NAME.go is there.
limited() {
  "${as_user[@]}" prlimit --nproc=3:100 env HOME=/nonexistent ./dlock run -k job --ttl "$2" \
    -b "${redis_url[a]}" -- perl -e 'open F, ">", "work/'"$1"'.in"; select undef, undef, undef, 0.02 until -e "work/'"$1"'.go"' 2>"$1.err" &
  launcher=$!
  wait_until 30 test -e "work/$1.in"
  wait_until 30 grep -q 'cannot start a thread' "$1.err"
}

limited kept 20s
sleep 1.5  # it is tried each second
assert_equal 1 "$(wc -l <kept.err)" "lines on stderr: $(<kept.err)"
supervisor=$(pgrep -P "$launcher")
"${as_user[@]}" prlimit --pid "$supervisor" --nproc=100
has_a_thread() { [[ -n $(find "/proc/$supervisor/task" -mindepth 1 -maxdepth 1 | sed -n 2p) ]]; }
wait_until 10 has_a_thread
touch work/kept.go
expect_status 0 wait "$launcher"

# No room until the end of the lease.
limited lost 4s
expect_status 79 wait "$launcher"
assert_contains "$(<lost.err)" '(cannot start a thread: '
