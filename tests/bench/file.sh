# shellcheck shell=bash
# The file backend, next to flock(1) doing the same on the same file system.  After common.sh.
: "${tmp:?bench.sh comes first}" "${dlock:?}" "${rounds:?}"

table "dlock file" flock

mapfile -t ms < <(run_ms 60 "'$dlock' run --key x -- /bin/true" "flock $tmp/flock /bin/true")
row "run /bin/true, ms (median)" "${ms[0]}" "${ms[1]}" "$(ratio "${ms[0]}" "${ms[1]}")" 1.5

for ((i = 0; i < rounds; ++i)); do
  hand_over "$dlock" run --quiet --key x -- >>"$tmp/dlock.us"
  hand_over flock "$tmp/flock" >>"$tmp/flock.us"
done
us=$(median <"$tmp/dlock.us")
flock_us=$(median <"$tmp/flock.us")
row "hand-over to one waiter, us (median of $rounds)" "$us" "$flock_us" "$(ratio "$us" "$flock_us")" 1.5

# A holder while its job runs.
"$dlock" run --key x -- "$tmp/stamp" "$tmp/idle" 60000 &
holder=$!
until [[ -e $tmp/idle ]]; do sleep 0.01; done
sleep 1.5
mapfile -t pids < <(dlock_tree "$holder")
before=$(switches "${pids[@]}")
sleep 5
row "wake-ups of a holder in 5 s" $(($(switches "${pids[@]}") - before)) "" - 0

# A job that waits.
"$dlock" run --quiet --key x -- /bin/true &
waiter=$!
flock --no-fork "$tmp/flock" sleep 60 &
flock_holder=$!
sleep 0.2
flock "$tmp/flock" /bin/true &
flock_waiter=$!
sleep 1
mapfile -t pids < <(dlock_tree "$waiter")
before=$(switches "${pids[@]}")
sleep 2
row "wake-ups of a waiter in 2 s" $(($(switches "${pids[@]}") - before)) "" - 0
row "memory of a waiter, KiB: resident" "$(memory Rss "${pids[@]}")" "$(memory Rss "$flock_waiter")" \
  "$(ratio "$(memory Rss "${pids[@]}")" "$(memory Rss "$flock_waiter")")" -
private='Private_Clean|Private_Dirty'
row "  of it private, in ${#pids[@]} processes" "$(memory "$private" "${pids[@]}")" \
  "$(memory "$private" "$flock_waiter")" \
  "$(ratio "$(memory "$private" "${pids[@]}")" "$(memory "$private" "$flock_waiter")")" -
stop "$waiter" "$holder" "$flock_waiter" "$flock_holder"
