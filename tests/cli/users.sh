# shellcheck shell=bash disable=SC2034  # the variables are for the scripts
# For scripts in which several users meet.  After lib.sh:
#   . "$(dirname "$0")/users.sh"
# sources backends.sh, for its jobs, and goes to a directory in which all users may write.  Skips the test where it may
# not be another user.
#
#   $root $alice $bob $eve  programs: dlock as this user runs it.  `DLOCK=$alice holder a -k job` is a job of alice.
#   ${uid[NAME]}            their numbers, which no password file knows.
#   $team                   the group of alice and bob.  Eve is in none.
: "${tmp:?lib.sh comes first}"
((EUID == 0)) || skip "only root can be several users"
need setpriv
. "${BASH_SOURCE[0]%/*}/backends.sh"

team=64100
declare -A uid=([root]=0 [alice]=64101 [bob]=64102 [eve]=64103)
root=$tmp/root.dlock alice=$tmp/alice.dlock bob=$tmp/bob.dlock eve=$tmp/eve.dlock

# lib_user NAME OPTIONS...: makes the program.
lib_user() {
  local name=$1
  shift
  cat >"$tmp/$name.dlock" <<SH
#!/bin/sh
exec setpriv --reuid ${uid[$name]} --regid ${uid[$name]} $* env HOME=/nonexistent "$tmp/dlock" "\$@"
SH
  chmod 755 "$tmp/$name.dlock"
}
cp -- "$DLOCK" "$tmp/dlock"
lib_user root --clear-groups
lib_user alice --groups $team
lib_user bob --groups $team
lib_user eve --clear-groups
chmod 711 "$tmp"
"$eve" version >/dev/null 2>&1 || skip "another user cannot run programs in $tmp"

mkdir -m 0755 "$tmp/work"
chmod 0777 "$tmp/work"
cd "$tmp/work" || exit
: >order
chmod 666 order
job=$tmp/job

# shared_directory KIND: makes $tmp/KIND and points DLOCK_BACKEND there: "group", for $team, or "everybody".
shared_directory() {
  case $1 in
    group) install -d -m 2770 -g $team "$tmp/group" ;;
    everybody) install -d -m 1777 "$tmp/everybody" ;;
  esac
  export DLOCK_BACKEND=file://$tmp/$1
}
