#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 20
# Whoever looks, and as often as he likes, keeps nobody from getting a lock and wakes none of those who
# wait; and who is dead is not shown as a holder once the lock is not his any more.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need pgrep

# A job that tells if another one runs: ./violated is there then.
cat >exclusive <<'SH'
#!/bin/bash
mkdir inside || touch violated
trap 'rmdir inside || touch violated' EXIT
. ./job
SH
chmod +x exclusive

# of_tree PID: it and what it has started.
of_tree() {
  local child
  echo "$1"
  for child in $(pgrep -P "$1" || true); do of_tree "$child"; done
}
# switches NAME...: how often they have gone to sleep till now.
switches() {
  local name one
  for name in "$@"; do
    for one in $(of_tree "${pid[$name]}"); do cat "/proc/$one/status"; done
  done | awk '/^voluntary_ctxt/ { n += $2 } END { print n }'
}
spoke() { [[ $(<"$1.err") == *"waiting for"* ]]; }
# kill_all NAME: it and its supervisor, so that nobody gives anything up.
kill_all() {
  local supervisor
  supervisor=$(pgrep -o -P "${pid[$1]}")
  kill -STOP "${pid[$1]}"
  kill -KILL "$supervisor" "${pid[$1]}"
  wait "${pid[$1]}" 2>/dev/null || true
  wait_until 20 gone "$supervisor"
}
# shown: who holds the lock, by list and by show.
shown() { { "$DLOCK" list -q -o pid job; "$DLOCK" show -o pid job || true; } | sed /PID/d | sort -u | xargs; }

# 50 rounds while three wait.
job=./exclusive
holder a -k job
for name in b c d; do waiter $name job; done
for name in b c d; do wait_until 30 spoke $name; done
before=$(switches b c d)
begun=$SECONDS
for ((i = 0; i < 50; ++i)); do
  "$DLOCK" list >list.out
  "$DLOCK" show job >show.out
  [[ $(<list.out) == *" ${pid[a]} "* && $(<show.out) == *", 3 waiting"*" pid ${pid[a]},"* ]] ||
    fail "in round $i: $(<list.out) $(<show.out)"
done
woken=$(($(switches b c d) - before))
seconds=$((SECONDS - begun))
# Where they ask by themselves every three seconds, that is what a slow machine adds.
((woken < (seconds <= 6 ? 40 : 16 + 4 * seconds))) || fail "those who wait were woken $woken times in $seconds s"
finish a b c d
assert_equal 'a b c d' "$(if [[ ${trait[order]} == none ]]; then sort order; else cat order; fi | xargs)" \
  "the order in which they got the lock"

# Nobody is refused a free lock because somebody looks.
rm -f order
(until test -e enough; do "$DLOCK" list -q; done >list.out) &
looks=($!)
(until test -e enough; do "$DLOCK" show job || true; done >show.out) &
looks+=($!)
# Two slots on three servers take all of them, and a release is done when the majority has it.
slots=2
[[ $backend != redlock ]] || slots=1
for ((i = 0; i < 50; ++i)); do
  expect_status 0 "$DLOCK" run -q -n -k job -- true
  expect_status 0 "$DLOCK" run -q -n -k job --shared -- true
  expect_status 0 "$DLOCK" run -q -n -k job --slots "$slots" -- true
done
for name in e f g; do start $name -k job; touch $name.go; done
ends 0 e f g
touch enough
expect_status 0 wait "${looks[@]}"
[[ ! -e violated ]] || fail "OVERLAP: two ran at once"

# shows PID...: these, and only these, hold the lock.  A server needs a moment to find a connection gone.
shows() { [[ $(shown) == "$*" ]]; }
moment=0
ttl=2
if ends_at_once && [[ ${trait[ends_on]} != exit ]]; then
  moment=10
  ttl=60  # which must not be what frees it
fi

# The dead: as long as their lock is held, and no longer.
job=./job
holder a -k job --ttl $ttl
waiter b job --ttl $((2 * ttl))
kill_all a
if ends_at_once; then
  not_a() { [[ $(shown) != *"${pid[a]}"* ]]; }
  wait_until $moment not_a
fi
runs b
assert_equal "${pid[b]}" "$(shown)" "who holds the lock when the next has it"
kill_all b
if ends_at_once; then
  wait_until $moment shows
else
  assert_equal "${pid[b]}" "$(shown)" "a lock whose holder died before its ttl was over"
fi
killed=$EPOCHSECONDS
until is_free job; do sleep 0.05; done
assert_equal '' "$(shown)" "a lock that can be had"
((EPOCHSECONDS - killed < 15)) || fail "the lock of a dead holder was held for too long"

# Next to one that lives.
for kind in --shared --slots=2; do
  holder a -k job $kind --ttl $ttl
  holder b -k job $kind
  kill_all a
  if ends_at_once; then wait_until $moment shows "${pid[b]}"; else wait_until 10 shows "${pid[b]}"; fi
  finish b
done
