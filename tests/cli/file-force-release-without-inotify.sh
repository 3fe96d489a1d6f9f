#!/usr/bin/env bash
# A holder for which the kernel has no inotify instance left (there are 128 for a user) notices within seconds that its lock
# was broken, or that its lock file was replaced.
. "$(dirname "$0")/lib.sh"
need python3
[[ $(uname -m) == @(x86_64|aarch64) ]] || skip "forbid.py does not know the system calls of $(uname -m)"
cd "$tmp"

deaf() { python3 "$TEST_SOURCE/tests/cli/forbid.py" inotify_init1 EMFILE "$DLOCK" run -q -k job "$@" -- sh -c 'touch held; exec sleep 600'; }
for kind in '' --shared --slots=2; do
  rm -f held
  deaf ${kind:+"$kind"} 2>err &
  wait_until 30 test -e held
  expect_status 0 "$DLOCK" force-release --yes job 2>broke
  assert_contains "$(<broke)" 'broke "job"' "force-release, $kind"
  wait_until 20 gone $!
  expect_status 79 wait $!
done

rm -f held
deaf &
wait_until 30 test -e held
rm "$locks/job"
wait_until 20 gone $!
expect_status 79 wait $!
