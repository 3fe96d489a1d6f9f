#!/usr/bin/env bash
# ctest: every backend
# 30 machines start the same job at the same second.  It fails the first times: each time one more runs it, one at a
# time, until it succeeds.  Then nobody runs it any more, and all say by whom it was done.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
if [[ ${trait[ids]} != true ]]; then
  expect_status 64 "$DLOCK" once -k job --every 1d -- touch ran 2>err
  assert_contains "$(<err)" "the backend $backend does not remember which jobs are done; use one of: file, "
  for words in 'once -k job --reset' 'list --done'; do
    # shellcheck disable=SC2086  # words
    expect_status 64 "$DLOCK" $words 2>err
    assert_contains "$(<err)" 'does not remember'
  done
  [[ ! -e ran ]] || fail "the command was run"
  exit 0
fi
need flock python3

# Fails until there are three lines in ./runs.  Nobody else runs meanwhile: ./alone is locked.
cat >try-it <<'SH'
#!/bin/sh
exec 9>alone
flock -n 9 || { echo overlap >>overlaps; exit 9; }
echo "$DLOCK_ONCE $DLOCK_FENCE" >>runs
sleep 0.05
[ "$(wc -l <runs)" -ge 3 ]
SH
chmod +x try-it
touch runs overlaps

crons=()
for i in {1..30}; do
  "$DLOCK" once -k import --every 1w --wait 100 -- ./try-it 2>"err.$i" &
  crons[i]=$!
done
done_by_others=0
failed=0
for i in {1..30}; do
  status=0
  wait "${crons[i]}" || status=$?
  case $status in
    0) ! grep -q 'not running ./try-it: "import" was done for .* ago, by .*try-it' "err.$i" || done_by_others=$((done_by_others + 1)) ;;
    1) failed=$((failed + 1)) ;;
    *) fail "status $status: $(<"err.$i")" ;;
  esac
done
assert_equal 3 "$(wc -l <runs)" "runs"
assert_equal "2 27" "$failed $done_by_others" "who failed, and who found it done"
assert_equal "" "$(<overlaps)" "two at once"
period=$(date -u +%G-W%V)
assert_equal "import@$period" "$(cut -d ' ' -f 1 runs | sort -u)" "DLOCK_ONCE"

# It is shown, and it is no lock.
expect_status 1 "$DLOCK" show import >shown
assert_contains "$(<shown)" "  Done      for $period, " "show"
"$DLOCK" list --done --json imp >listed
"$DLOCK" show --json import >shown || true
python3 - "$period" "$(tail -n 1 runs | cut -d ' ' -f 2)" <<'PY'
import json, sys
listed, = json.load(open('listed'))['done']
shown, = json.load(open('shown'))['done']
for mark in listed, shown:
    assert (mark['key'], mark['period'], mark['command']) == ('import', sys.argv[1], './try-it'), mark
    assert str(mark['fence']) == sys.argv[2], (mark, sys.argv)
    assert 0 <= mark['done_ms_ago'] < 100e3, mark
    assert 13 * 24 * 3600e3 < mark['expires_in_ms'] <= 14 * 24 * 3600e3, mark
PY
assert_equal "" "$("$DLOCK" list 2>/dev/null)" "locks"
assert_free import

# Once more when it is forgotten, and again not after that.
expect_status 0 "$DLOCK" once -q -k import --every 1w --reset
expect_status 1 "$DLOCK" once -q -k import --every 1w --reset
for i in 1 2; do expect_status 0 "$DLOCK" once -q -k import --every 1w -- ./try-it; done
assert_equal 4 "$(wc -l <runs)" "runs"

# What was remembered of one name says nothing of another.
expect_status 0 "$DLOCK" once -q -k import --remember 1h -- ./try-it
expect_status 0 "$DLOCK" once -q -k imports --every 1w -- ./try-it
assert_equal 6 "$(wc -l <runs)" "runs"
expect_status 0 "$DLOCK" once -q -k import --reset
assert_equal imports "$("$DLOCK" list --done | sed -n '2,$s/ .*//p')" "what is still remembered"
