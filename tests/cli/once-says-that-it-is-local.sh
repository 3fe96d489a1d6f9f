#!/usr/bin/env bash
# dlock once without a backend that somebody has named is done once on each machine, and says so.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
cd "$tmp"
unset DLOCK_BACKEND
[[ -n ${own_mounts-} ]] || skip "may not have mounts of its own"
[[ $tmp != /tmp/* && $tmp != /run/* ]] || skip "there is no /dev/shm for the files of this test"
cp "$DLOCK" dlock
DLOCK=$tmp/dlock  # the one under test may be below /tmp
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=1777 none /tmp

words='no backend is named, so this is done once on this machine'
expect_status 0 "$DLOCK" once -k job --every 1d -- true 2>err
assert_contains "$(<err)" "$words" "stderr without a backend"
expect_status 0 "$DLOCK" once -k job --every 1d -- true 2>err
assert_contains "$(<err)" "$words" "stderr when it was done"
expect_status 0 "$DLOCK" once -q -k job --every 1d -- true 2>err
assert_equal "" "$(<err)" "stderr with -q"
for named in file "file://$locks"; do
  expect_status 0 "$DLOCK" once -b "$named" -k job --every 1d -- true 2>err
  assert_lacks "$(<err)" "$words" "stderr with -b $named"
  expect_status 0 env DLOCK_BACKEND="$named" "$DLOCK" once -k job --every 1d -- true 2>err
  assert_lacks "$(<err)" "$words" "stderr with DLOCK_BACKEND=$named"
done
expect_status 0 "$DLOCK" run -k job -- true 2>err
assert_equal "" "$(<err)" "stderr of dlock run"
