#!/usr/bin/env bash
# ctest: soak
# ctest: cost 75
# Nothing tells a holder that a directory above the lock directory was renamed, or that something was mounted over it: it
# looks once a minute, and before it says that its job has succeeded.
. "$(dirname "$0")/lib.sh"
need unshare mount python3
cd "$tmp"

mkdir -m 0700 above above/locks
export DLOCK_BACKEND=file://$tmp/above/locks
replace_above() {
  mkdir -m 0700 new new/locks
  python3 -c 'import os; os.rename("above", "old"); os.rename("new", "above")'
}
can_mount() { unshare -m true 2>/dev/null; }

# A short job, which would say that it has succeeded; also where the lock is to be held on.
for options in '' '--min-hold 5'; do
  # shellcheck disable=SC2086  # words
  expect_status 79 "$DLOCK" run -k job $options -- sh -c 'mkdir -m 0700 new new/locks; mv above old; mv new above' 2>err
  assert_contains "$(<err)" 'lost "job" before'
  assert_contains "$(<err)" 'was replaced'
  rm -rf old
done

# A long one.
ends_within_a_minute() {
  wait_until 75 gone "$1"
  expect_status 79 wait "$1"
  assert_contains "$(<"err.$2")" 'was replaced; ending sleep'
}
"$DLOCK" run -k job -- sleep 600 2>err.renamed &
renamed=$!
wait_until 30 is_held job
sleep 2  # what happens in the first second is seen at once
replace_above
if can_mount; then
  # shellcheck disable=SC2016  # of the shell in there
  unshare -m bash -c '
    mkdir -m 0700 locks2
    DLOCK_BACKEND=file://$PWD/locks2 "$DLOCK" run -k job -- sleep 600 2>err.mounted &
    sleep 3
    mount -t tmpfs -o mode=0700 none locks2
    wait $!' &
  mounted=$!
fi
ends_within_a_minute "$renamed" renamed
if can_mount; then ends_within_a_minute "$mounted" mounted; fi
