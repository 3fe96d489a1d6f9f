#!/usr/bin/env bash
# On a server whose disk is full, who has a lock keeps it and the next has its turn; what needs more room
# is refused with the reason, and works as soon as there is room again.
# ctest: cost 10
# In a mount namespace of its own, for a disk that is small.
if [[ -z ${may_mount-} ]] && unshare --mount true 2>/dev/null; then
  may_mount=yes exec unshare --mount bash "$0"
fi
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
[[ -n ${may_mount-} ]] || skip "this user may not mount"

cd "$tmp"
disk=/mnt  # ours alone, and gone with us
mount -t tmpfs -o size=100M none $disk
start_postgres server
stop_postgres server
mv "${postgres_dir[server]}/data" $disk
ln -s $disk/data "${postgres_dir[server]}/data"
restart_postgres server
export DLOCK_PASSWORD_FILE=$postgres_password_file
fill() { dd if=/dev/zero of=$disk/junk bs=4k 2>/dev/null || true; }
# refused STATUS: dlock has said in ./err that the disk is full.
refused() {
  assert_equal 69 "$1" "exit status on a full disk ($(<err))"
  assert_contains "$(<err)" "postgres 127.0.0.1:${postgres_port[server]}: its disk is full" "the server and the reason"
}
is_waiting() { [[ $("$DLOCK" show -q -o waiting job) == *1 ]]; }
expires() { sql server "SELECT MAX(expires_at) FROM dlock_locks WHERE role = 'holder'"; }
renewed_after() { [[ $(expires) > $1 ]]; }

fill
for method in postgres postgres-row; do
  got=0
  "$DLOCK" run -q --backend "${postgres_url[server]/#postgres/$method}" -n -k job -- true 2>err || got=$?
  refused $got  # no tables can be made
done
rm $disk/junk

for method in postgres postgres-row; do
  export DLOCK_BACKEND=${postgres_url[server]/#postgres/$method}
  hold --ttl 3s
  "$DLOCK" run -q -k job -- touch next &
  waiter=$!
  wait_until 10 is_waiting
  fill
  before=$(expires)
  wait_until 10 renewed_after "$before"
  release
  expect_status 0 wait $waiter
  [[ -e next ]] || fail "the waiter had no turn, with $method"

  # The server has some room in its files, of which each key takes a little.
  for ((i = 0; i < 500; ++i)); do
    echo "INSERT INTO dlock_keys VALUES ('none', '$method $i $(printf %0200d 0)', 0);"
  done | sql server 2>sql-err || true
  assert_contains "$(<sql-err)" 'No space left'
  got=0
  for ((i = 0; i < 500 && got == 0; ++i)); do
    key=$(printf '%s%0200d' "$method" $i)
    "$DLOCK" run -q -n -k "$key" -- true 2>err || got=$?
  done
  refused $got
  rm $disk/junk next
  got=0
  "$DLOCK" run -q -k "$key" -- true 2>err || got=$?
  assert_equal 0 $got "status when there is room again ($(<err))"
done
