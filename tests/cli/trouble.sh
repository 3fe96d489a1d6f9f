# shellcheck shell=bash
# For the scripts that do something to a server while a job runs under a lock.  After lib.sh:
#   . "$(dirname "$0")/trouble.sh"
# makes in $tmp, where all below is done: job.sh, which runs until ./go is there, and stubborn.sh, which
# runs for ever with a child and a grandchild: all three have the lock of the file oracle, and none heeds SIGTERM.
: "${tmp:?lib.sh comes first}"
need flock

cat >"$tmp/job.sh" <<'SH'
#!/bin/sh
touch started
until test -e go; do sleep 0.02; done
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

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

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
