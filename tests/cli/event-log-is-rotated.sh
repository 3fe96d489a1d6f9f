#!/usr/bin/env bash
# The file can be renamed at any time, as logrotate does without copytruncate: no event is lost, none is torn, and what is
# renamed before an event does not get it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/event-log.sh"
cd "$tmp"

# While a job holds the lock.
umask 027
# shellcheck disable=SC2119  # no arguments
hold
mv log first
release
assert_equal acquired "$(jq -r .event first)" "events in the file that was renamed"
assert_equal released "$(jq -r .event log)" "events in the new file"
assert_equal 640 "$(stat -c %a log)" "mode of the new file"
rm log first

# Again and again.
mkdir old
(
  i=0
  until [[ -e enough ]]; do
    ! mv log "old/$((++i))" 2>/dev/null || sleep 0.002
  done
) &
rotates=$!
for ((i = 1; i <= 50; ++i)); do
  "$DLOCK" run -q -k "job$((i % 5))" -- true &
  ((i % 10)) || wait -n
done
mapfile -t runs < <(jobs -pr)
for run in "${runs[@]}"; do [[ $run == "$rotates" ]] || wait "$run"; done
touch enough
wait "$rotates"
(($(find old -type f | wc -l) > 2)) || fail "the file was not renamed while runs wrote to it"
# A renamed file can still get the line of a run that had opened it: in the order of time, all are there.
touch log
cat old/* log | jq -c . | sort -s >all
check_log all
assert_equal 50 "$(grep -c '"event":"acquired"' all)" "runs that have acquired"
assert_equal 50 "$(grep -c '"event":"released"' all)" "runs that have released"
