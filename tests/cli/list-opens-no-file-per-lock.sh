#!/usr/bin/env bash
# "dlock list" makes as many system calls that open files for a hundred locks as for one.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need strace

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}

# opened COUNT: how many files a list of so many locks opens.
opened() {
  local i
  for ((i = 0; i < $1; ++i)); do echo "SET dlock:job-$i id-$i PX 600000"; done | rcli a >/dev/null
  strace -qq -e trace=openat -o trace "$DLOCK" list >out
  assert_equal $(($1 + 1)) "$(wc -l <out)" "lines of the table"
  wc -l <trace
}

one=$(opened 1)
assert_equal "$one" "$(opened 100)" "files that a list of a hundred locks opens"
