#!/usr/bin/env bash
# With --min-hold and inherited descriptors the lock is free when the time is over, and the process that stays behind
# sleeps until then: it closes the descriptors once, and not those that it opened since under the same numbers.
. "$(dirname "$0")/lib.sh"
cd "$tmp"

for descriptor in 3 4 5 6 7 8; do
  eval "\"\$DLOCK\" run -k job --min-hold 3 -- sh -c 'echo \$PPID >supervisor; sleep 1.3' $descriptor>log"
  supervisor=$(<supervisor)
  assert_held job
  sleep 0.5
  stat=$(<"/proc/$supervisor/stat")
  read -ra times < <(cut -d ' ' -f 12,13 <<<"${stat##*) }")
  ((times[0] + times[1] < 10)) || fail "the process that stays behind is busy, with descriptor $descriptor"
  wait_until 5 gone "$supervisor"
  assert_free job
done
