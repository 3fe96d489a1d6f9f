# shellcheck shell=bash
# For the scripts that read an event log.  After lib.sh:
#   . "$(dirname "$0")/event-log.sh"
# makes all runs append to $tmp/log, which is ./log for the functions below.
: "${tmp:?lib.sh comes first}"
need python3 jq
export DLOCK_EVENT_LOG=$tmp/log

# check_log FILE: each line is as the manual says, and each run has one last event for each of its locks.
check_log() {
  python3 "$TEST_SOURCE/tests/event_log.py" "$1" || fail "the event log is not as the manual says"
}

# events FILTER: the members that the jq filter wants of each line of the log, joined by blanks, a line each.
events() { jq -r "[$1] | map(tostring) | join(\" \")" log; }

# logs COMMAND...: with an empty log; it must be as the manual says afterwards.
logs() {
  rm -f log
  "$@"
  check_log log
}
