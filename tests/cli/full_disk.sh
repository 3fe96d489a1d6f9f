# shellcheck shell=bash
# For the scripts about a database server whose disk is full: who has a lock keeps it and the next has its turn; what
# needs more room is refused with the reason, and works as soon as there is room again.
#   . "$(dirname "$0")/full_disk.sh"  # in place of lib.sh: all of it goes on in a mount namespace, for a small disk
#   kind=postgres                     # and then the script of that server: postgres.sh
# and after that, in this order:
#   on_small_disk SIZE                starts the server there
#   tables_need_room WHY BACKEND...   none can be made on a full disk
#   a_lock_needs_none BACKEND         but who has a lock or waits for it goes on
#   a_key_needs_room BACKEND METHOD ROWS SQL_WHY WHY
#                                     of ROWS rows in dlock_keys, of METHOD (SQL), the disk is full, for SQL_WHY
if [[ -z ${may_mount-} ]] && unshare --mount true 2>/dev/null; then
  may_mount=yes exec unshare --mount bash "$0"
fi
. "$(dirname "$0")/lib.sh"
[[ -n ${may_mount-} ]] || skip "this user may not mount"
disk=/mnt  # ours alone, and gone with us

on_small_disk() {
  local -n directory=${kind:?}_dir password_file=${kind}_password_file
  cd "$tmp"
  mount -t tmpfs -o size="$1" none $disk
  "start_$kind" server
  "stop_$kind" server
  mv "${directory[server]}/data" $disk
  ln -s $disk/data "${directory[server]}/data"
  "restart_$kind" server
  export DLOCK_PASSWORD_FILE=$password_file
}
lib_fill() { dd if=/dev/zero of=$disk/junk bs=4k 2>/dev/null || true; }
# lib_refused WHY STATUS: that is what dlock says in ./err.
lib_refused() {
  local -n ports=${kind}_port
  assert_equal 69 "$2" "exit status on a full disk ($(<err))"
  assert_contains "$(<err)" "$kind 127.0.0.1:${ports[server]}: $1" "the server and the reason"
}

tables_need_room() {
  local why=$1 got backend
  lib_fill
  for backend in "${@:2}"; do
    got=0
    "$DLOCK" run -q --backend "$backend" -n -k job -- true 2>err || got=$?
    lib_refused "$why" $got
  done
  rm $disk/junk
}

lib_waits() { [[ $("$DLOCK" show -q -o waiting job) == *1 ]]; }
lib_expires() { sql server "SELECT MAX(expires_at) FROM dlock_locks WHERE role = 'holder'"; }
lib_renewed_after() { [[ $(lib_expires) > $1 ]]; }
a_lock_needs_none() {
  local waiter before
  export DLOCK_BACKEND=$1
  hold --ttl 3s
  "$DLOCK" run -q -k job -- touch next &
  waiter=$!
  wait_until 10 lib_waits
  lib_fill
  before=$(lib_expires)
  [[ $1 == mysql-row:* ]] || wait_until 10 lib_renewed_after "$before"
  release
  expect_status 0 wait $waiter
  [[ -e next ]] || fail "the waiter had no turn, with $1"
  rm $disk/junk next
}

# The server has some room in its files, of which each key takes a little.
a_key_needs_room() {
  local method=$2 rows=$3 sql_why=$4 why=$5 i key got=0
  export DLOCK_BACKEND=$1
  lib_fill
  for ((i = 0; i < rows; ++i)); do
    echo "INSERT INTO dlock_keys VALUES ($method, '$1 $i $(printf %0200d 0)', 0);"
  done | sql server 2>sql-err || true
  assert_contains "$(<sql-err)" "$sql_why"
  for ((i = 0; i < 500 && got == 0; ++i)); do
    key=$(printf '%0200d' $i)
    "$DLOCK" run -q -n -k "$key" -- true 2>err || got=$?
  done
  lib_refused "$why" $got
  rm $disk/junk
  got=0
  "$DLOCK" run -q -k "$key" -- true 2>err || got=$?
  assert_equal 0 $got "status when there is room again ($(<err))"
}
