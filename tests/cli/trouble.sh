# shellcheck shell=bash
# For the scripts that do something to a server while a job runs under a lock.  After lib.sh:
#   . "$(dirname "$0")/trouble.sh"
# makes in $tmp, where all below is done: job.sh, which runs until ./go is there, and stubborn.sh, which
# runs for ever with a child and a grandchild: all three have the lock of the file oracle, and none heeds SIGTERM.
: "${tmp:?lib.sh comes first}"
need flock

cat >"$tmp/job.sh" <<'SH'
#!/bin/bash
exec 9<> <(:)
touch started
until [[ -e go ]]; do read -rt 0.02 -u 9; done
exit "${1:-0}"
SH
cat >"$tmp/stubborn.sh" <<'SH'
#!/bin/sh
exec 9<>oracle
flock -n 9 || exit 99
trap '' TERM
sh -c 'setsid sleep 1000 & touch started; while :; do sleep 1; done' &
while :; do sleep 1; done
SH
chmod +x "$tmp/job.sh" "$tmp/stubborn.sh"

# run_job TTL COMMAND...: a job under the lock "job"; its stderr goes to err, its pid to $holder.
run_job() {
  local ttl=$1
  shift
  rm -f started go oracle
  touch oracle
  "$DLOCK" run -k job --ttl "$ttl" --status-file status -- "$@" 2>err &
  holder=$!
  wait_until 20 test -e started
}

# job_ends STATUS WHEN: the holder does, with this status.
job_ends() {
  local got=0
  wait "$holder" || got=$?
  assert_equal "$1" "$got" "exit status of the holder when $2 ($(<err))"
}
warnings() { grep -c 'cannot renew' err || true; }
one_warning() { (($(warnings) == 1)); }
outcome_is() { assert_contains "$(<status)" "\"outcome\":\"$1\"" "status file when $2"; }

# survives_a_stop KIND NAME MESSAGE: the server NAME, of pause_KIND and resume_KIND, stops for less than the
# margin; the job, ./job.sh 7, hears nothing of it, and stderr has one warning, with MESSAGE.
survives_a_stop() {
  local what='the server stops for less than the margin'
  "pause_$1" "$2"
  wait_until 6 one_warning
  "resume_$1" "$2"
  wait_until 6 grep -q 'renewed "job" again' err
  touch go
  job_ends 7 "$what"
  outcome_is completed "$what"
  assert_equal 2 "$(wc -l <err)" "lines on stderr when $what ($(<err))"
  assert_contains "$(<err)" "$3" "stderr when $what"
}

# dies_of_a_stop KIND NAME END: it stops for longer; the job, ./stubborn.sh, is dead before END, by now_ms, at
# which the server gives the lock to others.  Sets $left, the milliseconds in between.
dies_of_a_stop() {
  local what='the server stops for longer'
  "pause_$1" "$2"
  left=$(($3 - $(now_ms)))
  ((left > 0)) || left=0
  # Until the last of them is dead.  Who looks may be late on a busy machine, but sees no death too late.
  flock -w "$((left / 1000)).$(printf %03d $((left % 1000)))" oracle true ||
    fail "OUTLIVED: something of the tree lives at the end of the lease"
  left=$(($3 - $(now_ms)))
  echo "$what: the tree is dead $left ms before the end of the lease"
  job_ends 79 "$what"
  outcome_is lost "$what"
  assert_contains "$(<err)" 'lost "job"' "stderr when $what"
  assert_contains "$(<err)" 'ending ./stubborn.sh' "stderr when $what"
  "resume_$1" "$2"
}

# lost MS WHAT: the holder ends with 79 within this time, and nobody works any more.
lost() {
  local begun took
  begun=$(now_ms)
  job_ends 79 "$2"
  took=$(($(now_ms) - begun))
  ((took < $(here "$1"))) || fail "it took $took ms to notice that $2"
  echo "$2: noticed after $took ms"
  outcome_is lost "$2"
  assert_contains "$(<err)" 'lost "job"' "stderr when $2"
  flock -n oracle true || fail "OUTLIVED: there is a job when $2"
}
