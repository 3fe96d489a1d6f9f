#!/usr/bin/env bash
# ctest: every mysql backend
# ctest: cost 15
# Those who wait when the server is restarted wait on, over new connections, and each has its turn; when
# it does not come back they end with 69.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"

queue_is() { [[ $("$DLOCK" show -q -o waiting job 2>/dev/null) == *"$1" ]]; }
waiters() { # so many, one after the other
  waiter=()
  local i
  for ((i = 1; i <= $1; ++i)); do
    "$DLOCK" run -k job -q --ttl 10s -- sh -c 'mkdir inside && sleep 0.1 && rmdir inside' 2>waiter.$i &
    waiter+=($!)
    wait_until 20 queue_is $i
  done
}

hold --ttl 10s 2>err
waiters 3
restart_mysql server
touch go
got=0
wait "$holder" || got=$?
# A row lock is lost with its connection, unless the job was done before that was found out.
if [[ $backend == mysql-row ]]; then ((got == 79 || got == 0)); else ((got == 0)); fi ||
  fail "the holder ends with $got ($(<err))"
for ((i = 0; i < 3; ++i)); do
  got=0
  wait "${waiter[i]}" || got=$?
  assert_equal 0 "$got" "status of waiter $((i + 1)) ($(<waiter.$((i + 1))))"
done

hold --ttl 10s 2>err
waiters 2
stop_mysql server
for ((i = 0; i < 2; ++i)); do
  got=0
  wait "${waiter[i]}" || got=$?
  assert_equal 69 "$got" "status of waiter $((i + 1)) ($(<waiter.$((i + 1))))"
  assert_contains "$(<waiter.$((i + 1)))" "mysql 127.0.0.1:${mysql_port[server]}: "
done
touch go
wait "$holder" || true
restart_mysql server
"$DLOCK" run -k job -q -w 60 -- true
