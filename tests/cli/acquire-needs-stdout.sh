#!/usr/bin/env bash
# If the grant cannot be written to stdout, nobody could release the lock: "dlock acquire" does, says so, and fails.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
[[ -c /dev/full ]] || skip "there is no /dev/full"
fails() { # WHY ARGUMENTS...; stdout is the caller's
  local why=$1 got=0
  shift
  "$DLOCK" acquire -k job -k other "$@" 2>err || got=$?
  assert_equal 1 "$got" "exit status of dlock acquire $*"
  assert_equal 1 "$(wc -l <err)" "lines on stderr"
  assert_contains "$(<err)" "standard output: $why; releasing "
  assert_free job
  assert_free other
}
for backend in "${redis_url[a]}" "$DLOCK_BACKEND"; do
  export DLOCK_BACKEND=$backend
  for form in '' --json --export --export=fish; do
    for how in --ttl=10m "--while=$$"; do
      [[ $backend != file* || $how == --while* ]] || continue
      fails 'No space left on device' ${form:+"$form"} "$how" >/dev/full
    done
  done
  fails 'Bad file descriptor' "--while=$$" >&-
done
export DLOCK_BACKEND=${redis_url[a]}
fails 'Bad file descriptor' --ttl=10m >&-

# Who reads has gone.
exec 8> >(:)
wait $!
fails 'Broken pipe' --ttl=10m >&8
exec 8>&-
