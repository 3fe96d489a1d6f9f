#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 20
# A waiter waits until the servers are back, with one message when the outage begins and one when it
# ends; at the end of --wait it gives up with 69.  A server that has not answered yet is tried for
# --connect-timeout, but with --nonblock only once.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
((${#servers_of_backend[@]})) || exit 0  # the kernel has no outage

says() { grep -c -- "$2" "$1.err" || true; }

holder h -k job --ttl 20s
waiter patient job --connect-timeout 1
waiter short job --wait 4 --connect-timeout 1
stop_servers
ends 69 short
grep -qE 'dlock: gave up after [4-7]' short.err || fail "$(<short.err)"  # it leaves the queue, too
assert_equal 1 "$(says patient 'trying again')" "messages at the beginning of the outage ($(<patient.err))"
assert_contains "$(<patient.err)" 'dlock: waiting for "job": '
assert_equal 0 "$(says patient 'answers again')" "messages at the end of it ($(<patient.err))"

begun=$(now_ms)
expect_status 69 "$DLOCK" run -q -n -k other -- true
(($(now_ms) - begun < $(here 1000))) || fail "--nonblock took $(($(now_ms) - begun)) ms"
start new -k other --connect-timeout 20
expect_status 69 "$DLOCK" run -q -k other --connect-timeout 1 -- true

restart_servers
finish new
assert_lacks "$(<new.err)" again "stderr when the first contact takes long"
touch h.go  # with or without the lock, which a server may have forgotten
runs patient
wait_until 30 gone "${pid[h]}"
finish patient
assert_equal 1 "$(says patient 'trying again')" "messages at the beginning of the outage ($(<patient.err))"
assert_equal 1 "$(says patient 'answers again after')" "messages at the end of it ($(<patient.err))"
