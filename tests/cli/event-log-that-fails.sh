#!/usr/bin/env bash
# An event log that cannot be written any more, on a full disk or over a limit, costs one warning; the job goes on, its
# exit status and its signals are its own, and no line is left in half.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

# fails TEXT COMMAND...: the job of the command ends with 5; stderr is one warning with the text.
fails() {
  expect_status 5 "${@:2}" 2>err
  assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
  assert_contains "$(<err)" "$1"
  assert_contains "$(<err)" "; events of this run are missing there"
}
job=("$DLOCK" run -k job --label "$(printf 'x%.0s' {1..500})" -- sh -c 'exit 5')

fails 'event log /dev/fd/3: No space left on device' env DLOCK_EVENT_LOG=/dev/fd/3 "${job[@]}" 3>/dev/full

# Removed with its directory, and replaced by what is refused.
mkdir dir
DLOCK_EVENT_LOG=$tmp/dir/log fails "event log $tmp/dir/log: No such file or directory" \
  "${job[@]:0:6}" -- sh -c 'rm -r dir; exit 5'
DLOCK_EVENT_LOG=$tmp/one fails "event log $tmp/one: is a link" \
  "${job[@]:0:6}" -- sh -c 'ln -sf precious one; exit 5'
[[ ! -e precious ]] || fail "an event went where a link leads"

# The limit of a file's size: SIGXFSZ reaches neither dlock nor the job, whose own disposition is as it was.
for size in 1 2; do
  rm -f log
  # shellcheck disable=SC2016  # for the inner shell
  fails "event log $tmp/log: " bash -c 'ulimit -f "$1"; "${@:2}"; exit $?' bash "$size" \
    "${job[@]:0:6}" -- bash -c '[[ $(trap -p XFSZ) == "" ]] || exit 1
      for i in 1 2 3; do "$DLOCK" run -q -k other --label "$(printf "x%.0s" {1..500})" -- true; done; exit 5'
  (($(wc -c <log) <= size * 1024)) || fail "the limit does not hold"
  [[ ! -s log || $(tail -c 1 log | xxd -p) == 0a ]] || fail "half a line is left: $(tail -n 1 log)"
  jq . log >/dev/null || fail "a line is torn"
done
limited() { bash -c 'ulimit -f 1; "$@"' bash "$@"; }
head -c 2000 /dev/zero | tr '\0' '\n' >log
signals=$(grep -E '^Sig(Blk|Ign|Pnd)' /proc/self/status)
assert_equal "$signals" "$(limited "$DLOCK" run -q -k job -- grep -E '^Sig(Blk|Ign|Pnd)' /proc/self/status)"
got=0
# shellcheck disable=SC2016  # for the inner shell
limited "$DLOCK" run -q -k job -- bash -c 'kill -XFSZ $$' 2>err || got=$?
assert_equal 153 "$got" "status of a job that dies of SIGXFSZ"

# A full disk, which has room again later.
if ((EUID == 0)) && mkdir disk && mount -t tmpfs -o size=8k tmpfs disk 2>mount.err; then
  export DLOCK_EVENT_LOG=$tmp/disk/log
  at_exit() { umount "$tmp/disk"; }
  head -c 7500 /dev/zero | tr '\0' '\n' >disk/log
  fails "event log $tmp/disk/log: " "${job[@]}"
  fails "event log $tmp/disk/log: " "${job[@]}"
  [[ $(tail -c 1 disk/log | xxd -p) == 0a ]] || fail "half a line is left on a full disk"
  mount -o remount,size=64k "$tmp/disk"
  expect_status 5 "${job[@]}"
  sed -i '/^$/d' disk/log
  jq . disk/log >/dev/null || fail "a line is torn"
  assert_equal released "$(tail -n 1 disk/log | jq -r .event)"
fi
