#!/usr/bin/env bash
# ctest: every kind of backend
# "dlock show" says by its status whether a lock is held, and prints who holds it and who waits for it, in
# the order in which they came; who is killed or gives up is not there any more.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need pgrep

host=$(uname -n)
user=$(id -un)
# pids [KEY]: of the waiters, as they are printed.
pids() { "$DLOCK" show "${1:-job}" | sed -n '/^HOST/,$p' | sed 1d | awk '{ print $2 }' | in_order; }
# those NAME...: what this must be.
those() {
  local name
  for name in "$@"; do echo "${pid[$name]}"; done | in_order
}
# Where there is none, any will do.
in_order() { if [[ ${trait[order]} == none ]]; then sort; else cat; fi | xargs; }
now_waiting() { [[ $(pids job) == "$(those "$@")" ]]; }

got=0
"$DLOCK" show job >out 2>err || got=$?
assert_equal "1/\"job\" is free in $location$agree/" "$got/$(<out)/$(<err)" "show of a free lock"

holder a -k job
"$DLOCK" show job >out 2>err
assert_equal "\"job\" is held exclusively in $location$agree" "$(head -n 1 out)" "what it says first"
assert_lacks "$(<out)" waiter "a lock for which nobody waits"
assert_equal '' "$(<err)" "stderr of show"
row="^$(head -c 12 a.token)  $host +${pid[a]} +$user +[0-9.]+m?s +([0-9.]+s +)?$(<a.fence) +\\./job\$"
[[ $(sed -n 4p out) =~ $row ]] || fail "the holder: $(<out)"

# Those that will die are missed when their ttl is over, at the latest.
for name in b c d e; do waiter $name job --ttl 4; done
waiter f job -w 8
"$DLOCK" show job >out
assert_equal "$(those b c d e f)" "$(pids)" "the pids of five waiters ($(<out))"
assert_contains "$(<out)" $'\n\n5 waiters, in their order:\n\nHOST ' "what stands over them"
assert_equal 5 "$(grep -cE "^$host +[0-9]+ +$user +[0-9.]+m?s +\\./job\$" out)" "rows of waiters in $(<out)"

# With its supervisor, so that nobody cleans up behind it; without; and one whose time is over.
kill -STOP "${pid[c]}"
kill -KILL "$(pgrep -P "${pid[c]}")" "${pid[c]}"
kill -KILL "${pid[e]}"
wait "${pid[c]}" "${pid[e]}" 2>/dev/null || true
wait_until 20 now_waiting b d f
ends 75 f
assert_equal "$(those b d)" "$(pids)" "the waiters that are left"
finish a
runs b
assert_equal "$(those d)" "$(pids)" "the waiters behind the second holder"
assert_contains "$("$DLOCK" show job)" $'\n1 waiter:\n' "what stands over one waiter"
finish b d
assert_equal 'a b d' "$(xargs <order)" "the order in which they got the lock"
expect_status 1 "$DLOCK" show job >out

# For a part of a lock.
holder a -k slots --slots 2
holder b -k slots --slots 2
for name in c d e; do waiter $name slots --slots 2; done
"$DLOCK" show slots >out
assert_equal "\"slots\" is held in 2 of 2 slots in $location$agree" "$(head -n 1 out)" "what it says of slots"
assert_equal "$(those c d e)" "$(pids slots)" "those who wait for a slot ($(<out))"
assert_equal 3 "$(grep -cE " +slots +[0-9.]+m?s +\\./job\$" out)" "rows that want a slot in $(<out)"
finish {a..e}

holder a -k shared --shared
holder b -k shared --shared
waiter c shared
"$DLOCK" show shared >out
assert_equal "\"shared\" is shared by 2 in $location$agree" "$(head -n 1 out)" "what it says of a shared lock"
assert_equal "$(those c)" "$(pids shared)" "who waits for a shared lock ($(<out))"
finish a b c
