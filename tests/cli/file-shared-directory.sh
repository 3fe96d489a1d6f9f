#!/usr/bin/env bash
# ctest: longer in soak
# ctest: cost 20
# In a directory of a group (mode 2770) or of everybody (mode 1777), its users and root exclude each other and see
# each other's locks, whoever came first and whatever the umask; a waiter gets in when another user's job ends.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
need pgrep

# A key whose lock file is in a folder of its own.
long=$(printf 'a/%.0s' {1..100})

# sees USER NAME KEY: the job NAME of another user is in what this user's list and show print.
sees() {
  local told
  told=$("${!1}" list -o key,pid) || fail "list of $1 ends with status $?"
  [[ $told == *"$3 "*" ${pid[$2]}"* ]] || fail "$1 does not see $2, pid ${pid[$2]}, in the list: $told"
  told=$("${!1}" show -o pid -- "$3") || fail "show of $1 ends with status $?"
  [[ $told == *"${pid[$2]}"* ]] || fail "$1 does not see $2, pid ${pid[$2]}, in show: $told"
}
# sees_waiter USER KEY: this user's show tells of one.
sees_waiter() {
  assert_equal 1 "$(DLOCK=${!1} waiting "$2")" "how many wait, as $1 sees it"
}
# refused USER KEY [OPTIONS]: this user does not get the lock.
refused() { expect_status 75 "${!1}" run -q -n -k "$2" "${@:3}" -- true; }

# exclusive FIRST SECOND KEY
exclusive() {
  DLOCK=${!1} holder a -k "$3"
  refused "$2" "$3"
  refused "$2" "$3" --shared
  sees "$2" a "$3"
  DLOCK=${!2} waiter b "$3"
  sees_waiter "$1" "$3"
  finish a
  runs b
  refused "$1" "$3"
  sees "$1" b "$3"
  (($(<b.fence) > $(<a.fence))) || fail "STALE: $2 has the fencing token $(<b.fence) after $1 had $(<a.fence)"
  finish b
}
shared() {
  DLOCK=${!1} holder a -k "$3" --shared
  DLOCK=${!2} holder b -k "$3" --shared
  sees "$1" b "$3"
  sees "$2" a "$3"
  refused "$2" "$3"
  DLOCK=${!1} waiter c "$3"
  sees_waiter "$2" "$3"
  finish a b
  runs c
  refused "$2" "$3" --shared
  finish c
}
slots() {
  DLOCK=${!1} holder a -k "$3" --slots 2
  DLOCK=${!2} holder b -k "$3" --slots 2
  sees "$1" b "$3"
  sees "$2" a "$3"
  refused "$1" "$3" --slots 2
  expect_status 64 "${!2}" run -q -n -k "$3" -- true 2>err
  DLOCK=${!2} waiter c "$3" --slots 2
  sees_waiter "$1" "$3"
  finish a
  runs c
  refused "$1" "$3" --slots 2
  finish b c
}

# killed FIRST SECOND: the first is killed as a holder; the second gets the lock, and the list has nobody any more.
killed() {
  local supervisor
  DLOCK=${!1} holder a -k dead
  supervisor=$(pgrep -o -P "${pid[a]}")
  kill -STOP "${pid[a]}"
  { kill -KILL "$supervisor" "${pid[a]}" && wait "${pid[a]}"; } 2>/dev/null || true
  touch a.go
  DLOCK=${!2} wait_until 20 is_free dead
  none_listed() { [[ -z $("$1" list -q) ]]; }
  wait_until 20 none_listed "${!2}"
  # Root may remove what is left of anybody.
  none_left() { none_listed "$root" && [[ -z $(find "$tmp/$kind" -name '*~w*') ]]; }
  wait_until 20 none_left
}

for kind in group everybody; do
  shared_directory $kind
  pairs=('alice bob' 'alice root' 'root bob')
  [[ $kind == group ]] || pairs+=('alice eve')
  for mask in 022 077; do
    umask $mask
    for pair in "${pairs[@]}"; do
      read -r first second <<<"$pair"
      modes=(exclusive shared slots)
      [[ $mask == 022 || -n ${TEST_SOAK-} ]] || modes=(exclusive)
      for mode in "${modes[@]}"; do
        key="$first $second $mask $mode"
        $mode "$first" "$second" "$key"
        $mode "$second" "$first" "$key"
      done
    done
    exclusive alice bob "$long$mask"
    exclusive bob root "$long$mask"
    killed alice bob
    killed root alice
  done
  umask 022
  assert_equal '' "$("$root" list -q)" "locks that are held at the end"
done

# Who is not of the group stays out.
shared_directory group
expect_status 77 "$eve" run -q -n -k job -- true 2>err
assert_contains "$(<err)" "$tmp/group" "stderr"
