#!/usr/bin/env bash
# In a directory of mode 1777 nothing depends on what fs.protected_regular forbids there: to open a file of another user
# with O_CREAT.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
need strace

# traced STATUS ARGUMENTS...: bob's dlock ARGUMENTS ends so, and opens no file of others that way.
traced() {
  local want=$1 got=0 name created
  shift
  find "$tmp/everybody" ! -uid "${uid[bob]}" -printf '%f\n' | sort >of_others
  strace -f -qq -e trace=open,openat,openat2,creat -o trace "$bob" "$@" >out 2>err </dev/null || got=$?
  assert_equal "$want" "$got" "status of dlock $* ($(<err))"
  created=$(grep 'O_CREAT' trace | grep -v 'O_EXCL' | sed 's/^[^"]*"\([^"]*\)".*/\1/' || true)
  for name in $created; do
    ! grep -qxF -- "${name##*/}" of_others || fail "dlock $* opens $name, of another user, with O_CREAT: $(grep -F -- "$name" trace)"
  done
}

shared_directory everybody
umask 077
for mode in '' --shared --slots=2; do
  key=job${mode/=/}
  # After a run of another user; beside one; and behind one.
  "$alice" run -q -k "$key" ${mode:+"$mode"} -- true
  traced 0 run -q -n -k "$key" ${mode:+"$mode"} -- true
  DLOCK=$alice holder a -k "$key" ${mode:+"$mode"}
  beside=0
  [[ -n $mode ]] || beside=75
  traced $beside run -q -n -k "$key" ${mode:+"$mode"} -- true
  DLOCK=$alice holder b -k "$key-all"
  traced 75 run -q -w 0.3 -k "$key-all" -- true
  traced 0 list
  traced 0 show "$key"
  traced 0 force-release --yes "$key"
  ends 79 a
  finish b
done
