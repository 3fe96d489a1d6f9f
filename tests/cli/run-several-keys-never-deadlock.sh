#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: processors 2
# ctest: cost 20
# 20 processes take random pairs of 5 keys, in random order: none waits for ever, and under no key do two commands run.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
export DLOCK_BACKEND

# It holds a lock of its own on a file of each key: a refusal is an overlap.
cat >pair <<'SH'
#!/bin/bash
for key in $DLOCK_KEYS; do
  exec {fd}>"oracle.$key"
  flock -n "$fd" || { echo "overlap on $key" >>overlaps; exit 1; }
done
read -rt 0.00$((RANDOM % 9 + 1)) <>never
echo >>"counter"
SH
chmod +x pair
mkfifo never
touch overlaps counter
rounds=4
worker() {
  local i one two
  RANDOM=$1
  for ((i = 0; i < rounds; ++i)); do
    one=$((RANDOM % 5))
    two=$(((one + 1 + RANDOM % 4) % 5))
    "$DLOCK" run -q --wait 200 -k "key$one" -k "key$two" -- ./pair
  done
}
workers=()
for ((n = 0; n < 20; ++n)); do
  worker "$n" &
  workers+=($!)
done
for one in "${workers[@]}"; do
  wait "$one" || fail "a worker ended with status $? ($(<overlaps))"
done
assert_equal "" "$(<overlaps)" "overlaps"
assert_equal $((20 * rounds)) "$(wc -l <counter)" "commands that ran"
assert_equal "" "$("$DLOCK" list --output key 2>/dev/null | sed 1d)" "what is left"
