#!/usr/bin/env bash
# Where close_range(2) is refused (Linux before 5.11, sandboxes), the descriptors that are open are looked at, and not
# each number up to a limit that may be 10^9; and the command still gets its own ones only.
. "$(dirname "$0")/lib.sh"

need strace
cd "$tmp"
hard=$(ulimit -Hn)
[[ $hard == unlimited || $hard -ge 16384 ]] || skip "ulimit -Hn is small"

# calls LIMIT: how many fcntl(2) a run makes with this limit on descriptors.
calls() {
  (
    ulimit -n "$1"
    exec strace -f -qq -o trace -e trace=fcntl,close_range -e inject=close_range:error=EINVAL \
      "$DLOCK" run -q -k job -- bash -c 'echo /proc/self/fd/*' >fds 9</dev/null
  )
  grep -c 'fcntl(' trace
}
few=$(calls 1024)
open=$(<fds)
many=$(calls 16384)
((many < few + 100)) || fail "$few calls of fcntl with ulimit -n 1024, $many with 16384"
assert_equal "$open" "$(<fds)" "descriptors of the command"
assert_contains "$open" /proc/self/fd/9
assert_equal "$(bash -c 'echo /proc/self/fd/*' 9</dev/null)" "$open" "descriptors with dlock, and without"
