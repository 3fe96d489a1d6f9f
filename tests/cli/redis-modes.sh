#!/usr/bin/env bash
# On a redis server readers read together and writers alone, no stream of readers keeps a writer out,
# there are never more holders than slots, and modes that cannot be mixed are refused with both named.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
need flock

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
queued() { [[ $(rcli a zcard "{dlock:$1}:queue") == "$2" ]]; }

# hold NAME KEY OPTIONS: holds KEY until ./NAME.go is there.
hold() {
  local name=$1 key=$2
  shift 2
  # shellcheck disable=SC2016  # for the inner shell
  "$DLOCK" run -q -k "$key" "$@" -- \
    sh -c 'touch "$1.held"; until test -e "$1.go"; do sleep 0.02; done' sh "$name" &
  pids[$name]=$!
  wait_until 30 test -e "$name.held"
}
end() {
  local name
  for name in "$@"; do
    touch "$name.go"
    wait "${pids[$name]}"
  done
}
declare -A pids=()

# Readers.
hold r1 job --shared
hold r2 job --shared
expect_status 75 "$DLOCK" run -q -n -k job -- true
"$DLOCK" run -q -k job -- sh -c 'test -e r1.go -a -e r2.go && touch wrote' &
writer=$!
wait_until 30 queued job 1
# A reader that comes after the writer waits behind it.
"$DLOCK" run -q -k job --shared -- test -e wrote &
reader=$!
wait_until 30 queued job 2
expect_status 75 "$DLOCK" run -q -n -k job --shared -- true
end r1
queued job 2 || fail "somebody got in when only one of two readers had left"
end r2
expect_status 0 wait "$writer"
expect_status 0 wait "$reader"

hold w job
expect_status 75 "$DLOCK" run -q -n -k job --shared -- true
end w

# A stream of readers, two at least at any time.
stream() {
  until [[ -e wrote2 ]]; do
    "$DLOCK" run -q -k job --shared -- sleep 0.2 || return
  done
}
readers=()
for i in 1 2 3; do
  stream &
  readers+=($!)
  sleep 0.07
done
expect_status 0 "$DLOCK" run -q -k job -w 30 -- touch wrote2
for reader in "${readers[@]}"; do expect_status 0 wait "$reader"; done

# Slots, counted by the kernel: who has one finds one of three files without a lock.
cat >take.sh <<'SH'
#!/bin/sh
for i in 1 2 3; do
  exec 9>>"oracle.$i"
  if flock -n 9; then
    touch "used.$i"
    sleep 0.02
    exit 0
  fi
done
exit 99
SH
chmod +x take.sh
takers=()
for ((i = 0; i < 12; ++i)); do
  (for ((n = 0; n < 10; ++n)); do "$DLOCK" run -q -k pool --slots 3 -- ./take.sh || exit; done) &
  takers+=($!)
done
for taker in "${takers[@]}"; do expect_status 0 wait "$taker"; done
[[ -e used.3 ]] || fail "no three holders of three slots at once"

hold s1 pool --slots 2
hold s2 pool --slots 2
expect_status 75 "$DLOCK" run -q -n -k pool --slots 2 -- true
end s1
expect_status 0 "$DLOCK" run -q -n -k pool --slots 2 -- true

# refused KEY HELD WORDS OPTIONS...: with both modes in the one line.
refused() {
  local key=$1 held=$2 wanted=$3
  shift 3
  for mode in -n -w30; do
    try 64 -k "$key" "$mode" "$@" -- touch ran
    assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
    assert_contains "$(<err)" "$held" "$* against $held"
    assert_contains "$(<err)" "$wanted" "$* against $held"
  done
}
refused pool '--slots 2' '--slots 3' --slots 3
refused pool '--slots 2' --shared --shared
refused pool '--slots 2' exclusive
end s2
hold e job
refused job exclusive '--slots 2' --slots 2
end e
hold r job --shared
refused job --shared '--slots 2' --slots 2
end r
[[ ! -e ran ]] || fail "a command was run with a mode that does not fit"
