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
pids() { "$DLOCK" show "${1:-job}" | sed -n '/^  Waiting/,$s/.*, pid \([0-9]*\),.*/\1/p' | in_order; }
# those NAME...: what this must be.
those() {
  local name
  for name in "$@"; do echo "${pid[$name]}"; done | in_order
}
# Where there is none, any will do.
in_order() { if [[ ${trait[order]} == none ]]; then sort; else cat; fi | xargs; }
now_waiting() { [[ $(pids job) == "$(those "$@")" ]]; }

# shows LINE...: ./out is these lines, of which `*` may be anything.
shows() {
  local line i=0
  for line in "$@"; do
    ((++i))
    # shellcheck disable=SC2053  # a pattern
    [[ $(sed -n "${i}p" out) == $line ]] || fail "line $i of show is not \"$line\": $(<out)"
  done
  assert_equal "$i" "$(wc -l <out)" "lines of show ($(<out))"
}
servers=()
[[ $backend != redlock ]] || servers=('  Servers   3 of 3 agree')
place=("  Backend   $location" "${servers[@]}")
numbered() { if [[ ${trait[order]} == fifo ]]; then echo "$1. "; fi; }

got=0
"$DLOCK" show job >out 2>err || got=$?
assert_equal "1/" "$got/$(<err)" "show of a free lock"
shows 'job: free' "${place[@]}"

holder a -k job
"$DLOCK" show job >out 2>err
expires=()
[[ ${trait[ends_on]} != ttl ]] || expires=('  Expires   in [23]*s without a renewal')
shows 'job: held, exclusive' "${place[@]}" "  Holder    $user on $host, pid ${pid[a]}, dlock run" '  Command   ./job' \
  '  Since     * 20??-??-?? ??:??:?? * (*s ago)' "${expires[@]}" "  Fence     $(<a.fence)" \
  "  Id        $(head -c 12 a.token)"
assert_equal '' "$(<err)" "stderr of show"

# Those that will die are missed when their ttl is over, at the latest.
for name in b c d e; do waiter $name job --ttl 4; done
waiter f job -w 8
"$DLOCK" show job >out
assert_equal "$(those b c d e f)" "$(pids)" "the pids of five waiters ($(<out))"
assert_equal 'job: held, exclusive, 5 waiting' "$(head -n 1 out)" "the first line"
grep -qF "  $(numbered 5)$user on $host, pid ${pid[f]}, for " out || fail "the last of five waiters: $(<out)"
assert_equal "$([[ ${trait[order]} == fifo ]] && echo 0 || echo 1)" "$(grep -c '^  Waiting   (in no order)$' out)" \
  "whether there is no order ($(<out))"

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
assert_contains "$("$DLOCK" show job)" 'job: held, exclusive, 1 waiting' "the first line with one waiter"
finish b d
assert_equal 'a b d' "$(xargs <order)" "the order in which they got the lock"
expect_status 1 "$DLOCK" show job >out

# For a part of a lock.
holder a -k slots --slots 2
holder b -k slots --slots 2
for name in c d e; do waiter $name slots --slots 2; done
"$DLOCK" show slots >out
assert_equal "slots: held, 2 of 2 slots, 3 waiting" "$(head -n 1 out)" "what it says of slots"
assert_equal "$(those c d e)" "$(pids slots)" "those who wait for a slot ($(<out))"
assert_equal 3 "$(grep -cE ", slots, for [0-9.]+m?s: job$" out)" "waiters that want a slot in $(<out)"
finish {a..e}

holder a -k shared --shared
holder b -k shared --shared
waiter c shared
"$DLOCK" show shared >out
assert_equal "shared: held, shared by 2, 1 waiting" "$(head -n 1 out)" "what it says of a shared lock"
assert_equal "$(those c)" "$(pids shared)" "who waits for a shared lock ($(<out))"
finish a b c
