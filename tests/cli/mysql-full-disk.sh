#!/usr/bin/env bash
# On a server whose disk is full, who has a lock keeps it and the next has its turn; what needs more room
# is refused with the reason, and works as soon as there is room again.
# ctest: cost 25
# ctest: longer in soak
# In a mount namespace of its own, for a disk that is small.
if [[ -z ${may_mount-} ]] && unshare --mount true 2>/dev/null; then
  may_mount=yes exec unshare --mount bash "$0"
fi
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
[[ -n ${may_mount-} ]] || skip "this user may not mount"

cd "$tmp"
disk=/mnt  # ours alone, and gone with us
mount -t tmpfs -o size=40M none $disk
start_mysql server
stop_mysql server
mv "${mysql_dir[server]}/data" $disk
ln -s $disk/data "${mysql_dir[server]}/data"
restart_mysql server
export DLOCK_PASSWORD_FILE=$mysql_password_file
fill() { dd if=/dev/zero of=$disk/junk bs=4k 2>/dev/null || true; }
# refused WHY STATUS: that is what dlock says in ./err.
refused() {
  assert_equal 69 "$2" "exit status on a full disk ($(<err))"
  assert_contains "$(<err)" "mysql 127.0.0.1:${mysql_port[server]}: " "the server in the message"
  assert_contains "$(<err)" "$1" "the reason in the message"
}
is_waiting() { [[ $("$DLOCK" show -q -o waiting job) == *1 ]]; }
expires() { sql server "SELECT MAX(expires_at) FROM dlock_locks WHERE role = 'holder'"; }
renewed_after() { [[ $(expires) > $1 ]]; }

methods=(table)
[[ -z ${TEST_SOAK-} ]] || methods+=(row version)

fill
for method in "${methods[@]}"; do
  got=0
  "$DLOCK" run -q --backend "${mysql_url[server]/table/$method}" -k job -- true 2>err || got=$?
  refused 'it cannot write a file (' $got
done
rm $disk/junk

for method in "${methods[@]}"; do
  export DLOCK_BACKEND=${mysql_url[server]/table/$method}
  hold --ttl 3s
  "$DLOCK" run -q -k job -- touch next &
  waiter=$!
  wait_until 10 is_waiting
  fill
  before=$(expires)
  [[ $method == row ]] || wait_until 10 renewed_after "$before"
  release
  expect_status 0 wait $waiter
  [[ -e next ]] || fail "the waiter had no turn, with mysql-$method"

  # The server has some room in its files, of which each key takes a little.
  for ((i = 0; i < 2000; ++i)); do
    echo "INSERT INTO dlock_keys VALUES (99, '$method $i $(printf %0200d 0)', 0);"
  done | sql server 2>sql-err || true
  assert_contains "$(<sql-err)" 'is full'
  got=0
  for ((i = 0; i < 500 && got == 0; ++i)); do
    key=$(printf '%s%0200d' "$method" $i)
    "$DLOCK" run -q -k "$key" -- true 2>err || got=$?
  done
  refused 'its disk or table space is full' $got
  echo "mysql-$method: $i key(s) until the disk was full"
  rm $disk/junk next
  got=0
  "$DLOCK" run -q -k "$key" -- true 2>err || got=$?
  assert_equal 0 $got "status when there is room again ($(<err))"
done
