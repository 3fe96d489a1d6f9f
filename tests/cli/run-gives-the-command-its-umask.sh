#!/usr/bin/env bash
# The command has the umask that dlock was started with, and the status file its mode, while dlock creates files that
# other users may write to: dlock does not change its own umask back and forth, which another of its threads would see.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
need strace

shared_directory everybody
umask 027
# What comes first clears the umask; what would set it again is not done.
strace -f -qq -o trace -e trace=umask -e inject=umask:retval=0:when=2+ \
  "$DLOCK" run -q -k a -k b --status-file status.json -- \
  sed -n 's/^Umask:\t//p' /proc/self/status >out 2>err || fail "status $? ($(<err))"
assert_equal 0027 "$(<out)" "umask of the command ($(<trace))"
assert_equal 640 "$(stat -c %a status.json)" "mode of the status file"
assert_equal 666 "$(stat -c %a "$tmp/everybody/a")" "mode of a lock file that all users share"

"$DLOCK" run -q -k a -k b -- sh -c umask >out
assert_equal 0027 "$(<out)" "umask of the command, without strace"
