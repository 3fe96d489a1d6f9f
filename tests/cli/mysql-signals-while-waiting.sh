#!/usr/bin/env bash
# A waiter that is sent a signal, or whose time is over, ends at once, and leaves no connection and no row.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"

cd "$tmp"
start_mysql a
export DLOCK_PASSWORD_FILE=$mysql_password_file
waits() { [[ $("$DLOCK" show -q -o waiting job) == *1 ]]; }
sessions() { sql a "SELECT COUNT(*) FROM information_schema.processlist WHERE user = 'app'"; }
only_the_holder() {
  [[ $(sessions) == "$of_a_holder" && $(sql a "SELECT COUNT(*) FROM dlock_locks WHERE role = 'waiter'") == 0 ]]
}

for method in table row version; do
  of_a_holder=1
  [[ $method == row ]] && of_a_holder=2
  export DLOCK_BACKEND=mysql-$method://app@127.0.0.1:${mysql_port[a]}/test
  for kind in '' --slots=1; do
    hold ${kind:+"$kind"} 2>err
    wait_until 10 only_the_holder
    for signal in TERM HUP; do  # bash makes background jobs ignore INT
      "$DLOCK" run -k job -q ${kind:+"$kind"} -- touch ran &
      waiter=$!
      wait_until 20 waits
      begun=$(now_ms)
      kill -s $signal $waiter
      got=0
      wait $waiter || got=$?
      assert_equal $((128 + $(kill -l $signal))) "$got" "status after $signal with mysql-$method $kind"
      (($(now_ms) - begun < $(here 2000))) || fail "it took $(($(now_ms) - begun)) ms to end"
      wait_until 5 only_the_holder
    done
    begun=$(now_ms)
    expect_status 75 "$DLOCK" run -k job -q -w 1 ${kind:+"$kind"} -- touch ran
    took=$(($(now_ms) - begun))
    ((took >= 1000 && took < $(here 2500))) || fail "--wait 1 took $took ms with mysql-$method $kind"
    wait_until 5 only_the_holder
    [[ ! -e ran ]] || fail "a waiter that gave up ran its command"
    release
  done
done
