#!/usr/bin/env bash
# ctest: processors 2
# Hundreds of runs append to one event log at once: no line is torn, and each run has one last event.  The longest texts
# that there can be do not make a line longer than 4096 bytes.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

printf -v long '%*s' 1024 ''
for ((i = 1; i <= 300; ++i)); do
  "$DLOCK" run -q -k "job$((i % 20))" --label "$i${long:${#i}}" -- true &
done
wait
check_log log
assert_equal 300 "$(grep -c '"event":"released"' log)" "runs that have released"
assert_equal 300 "$(jq -r .run log | sort -u | wc -l)" "runs"

# Three bytes of UTF-8 that are escaped, and a key and a command that are as long as can be.
key=$(printf '\u202e%.0s' {1..85})
label=$(printf '\u202e%.0s' {1..341})
cp /bin/true "$(printf 'c\001%.0s' {1..100})"
logs "$DLOCK" run -q -k "$key" --label "$label" -- ./c*
(($(wc -L <log) > 3000)) || fail "the lines are not long"
assert_equal "$key" "$(jq -r .key log | head -n 1)"
label=$(printf '\u00ad%.0s' {1..512})
logs "$DLOCK" run -q -k "$key" --label "$label" -- ./c*
assert_contains "$(jq -r .label log | head -n 1)" '...'
