#!/usr/bin/env bash
# ctest: every kind of backend
# When "dlock force-release" breaks all who have a part of a lock, each of them is told by whom and why,
# also those that have only just got it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

for kind in --shared --slots=3; do
  for name in a b c; do holder $name -k job $kind; done
  "$DLOCK" force-release --yes --reason 'the disk is full' job 2>err &
  breaker=$!
  expect_status 0 wait $breaker
  assert_equal 3 "$(grep -c '^dlock: broke "job"' err)" "grants that were broken ($(<err))"
  ends 79 a b c
  for name in a b c; do
    assert_contains "$(<$name.err)" "by $(id -un) on $(uname -n) (pid $breaker): the disk is full" \
      "what $name says, $kind"
  done
done
