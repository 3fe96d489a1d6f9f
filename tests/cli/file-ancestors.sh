#!/usr/bin/env bash
# Who owns a directory or a link that the path of a lock directory leads through, or may write to that directory, could
# put another lock directory in its place, and let two holders in.  dlock refuses a path where that is somebody whom
# nobody has asked in.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
export DLOCK=$root
as_eve=(setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups)

# The schedule: root's job a holds a lock; eve, who owns the parent, puts another directory in its place; root's job b.
install -d -o "${uid[eve]}" "$tmp/eves"
install -d -m 1777 "$tmp/eves/locks"
start a -b "file://$tmp/eves/locks" -k job --kill-after 60
begun_or_ended() { [[ -e a.held ]] || gone "${pid[a]}"; }
wait_until 30 begun_or_ended
if [[ -e a.held ]]; then
  "${as_eve[@]}" mv "$tmp/eves/locks" "$tmp/eves/old"
  "${as_eve[@]}" install -d -m 1777 "$tmp/eves/locks"
  "$root" run -q -n -b "file://$tmp/eves/locks" -k job -- touch b.held || true
  [[ ! -e b.held || ! -d /proc/$(<a.pid) ]] || fail "eve let two holders in"
fi
ends 77 a
[[ ! -e a.held ]] || fail "a job was started under a lock that eve can give to others"

# try_path USER DIRECTORY: sets got and ./err.
try_path() {
  rm -f ran
  got=0
  "${!1}" run -q -n -k job -b "file://$2" -- touch "$tmp/work/ran" 2>err || got=$?
}
refuses() { # USER TEXT DIRECTORY
  try_path "$1" "$3"
  assert_equal 77 "$got" "exit status for $1 and $3 ($(<err))"
  assert_equal 1 "$(wc -l <err)" "lines on stderr for $1 and $3"
  assert_contains "$(<err)" "lock directory $3 could be replaced by others, as $2" "stderr for $1 and $3"
  [[ ! -e ran ]] || fail "the command was run although $3 was refused"
}
allows() { # USER DIRECTORY
  try_path "$1" "$2"
  assert_equal 0 "$got" "exit status for $1 and $2 ($(<err))"
}

# chain NAME PARENT LOCKS: makes $tmp/NAME and $tmp/NAME/locks, each given as "MODE OWNER GROUP".
chain() {
  local mode owner group
  read -r mode owner group <<<"$2"
  mkdir "$tmp/$1"
  chown "${uid[$owner]}:$group" "$tmp/$1"
  chmod "$mode" "$tmp/$1"
  read -r mode owner group <<<"$3"
  mkdir "$tmp/$1/locks"
  chown "${uid[$owner]}:$group" "$tmp/$1/locks"
  chmod "$mode" "$tmp/$1/locks"
}

# Owners.
chain of-eve '755 eve 0' "700 alice 0"
refuses alice "$tmp/of-eve belongs to user ${uid[eve]}: use another directory, or chown it" "$tmp/of-eve/locks"
chain of-eve-sticky '1777 eve 0' "700 alice 0"
refuses alice "$tmp/of-eve-sticky belongs to user ${uid[eve]}" "$tmp/of-eve-sticky/locks"
chain of-alice '755 alice 0' '700 root 0'
refuses root "$tmp/of-alice belongs to user ${uid[alice]}" "$tmp/of-alice/locks"
chain of-alice-shared "755 alice 0" "2770 alice $team"
for user in alice bob root; do allows $user "$tmp/of-alice-shared/locks"; done
chain of-alice-with-a-sharer "755 alice 0" "2770 root $team"
allows alice "$tmp/of-alice-with-a-sharer/locks"
refuses bob "$tmp/of-alice-with-a-sharer belongs to user ${uid[alice]}" "$tmp/of-alice-with-a-sharer/locks"
# No need to read it.
chain unreadable '711 root 0' '700 alice 0'
allows alice "$tmp/unreadable/locks"

# Modes.
chain team "2775 root $team" "700 alice 0"
refuses alice "$tmp/team is writable by group $team (mode 2775): use another directory, chmod g-w it, or let this group write to the lock directory, too" "$tmp/team/locks"
chain team-sticky "3775 root $team" "700 alice 0"
allows alice "$tmp/team-sticky/locks"
chain team-in-team "2775 root $team" "2770 root $team"
for user in alice bob root; do allows $user "$tmp/team-in-team/locks"; done
chain team-in-another "2775 root 64999" "2770 root $team"
refuses alice "$tmp/team-in-another is writable by group 64999" "$tmp/team-in-another/locks"
# In these nobody of the team may delete the lock files of others.
chain sticky-in-team "2775 root $team" "3770 root $team"
refuses alice "$tmp/sticky-in-team is writable by group $team" "$tmp/sticky-in-team/locks"
chain everybody-in-team "2775 root $team" "1777 root $team"
refuses eve "$tmp/everybody-in-team is writable by group $team" "$tmp/everybody-in-team/locks"
chain everybody-in-sticky '1777 root 0' '1777 root 0'
for user in alice eve root; do allows $user "$tmp/everybody-in-sticky/locks"; done
chain writable "777 alice 0" "700 alice 0"
refuses alice "$tmp/writable is writable by everybody and not sticky (mode 0777): use another directory, or chmod o-w or chmod +t it" "$tmp/writable/locks"
# The private group of a user, as Debian and Fedora make it, with a umask of 002.
# Group 0 is not: containers run processes of any user in it.
chain group-0 "775 root 0" "700 root 0"
refuses root "$tmp/group-0 is writable by group 0" "$tmp/group-0/locks"
if unshare -m true 2>unshare.err; then
  cat >private.sh <<'SH'
set -e
for file in passwd group; do
  cp /etc/$file "$file.new"
done
echo "alice:x:$1:64200::/nonexistent:/bin/sh" >>passwd.new
echo "alice:x:64200:" >>group.new
mount --bind passwd.new /etc/passwd
mount --bind group.new /etc/group
"$2" run -q -n -k job -b "file://$3" -- true
sed 's/^alice:x:64200:$/&eve/' /etc/group >group.eve
cp /etc/group group.alice
cat group.eve >/etc/group
if "$2" run -q -n -k job -b "file://$3" -- true 2>private.err; then exit 2; fi
# It is the first group of eve.
cat group.alice >/etc/group
"$2" run -q -n -k job -b "file://$3" -- true
echo "eve:x:64999:64200::/nonexistent:/bin/sh" >>/etc/passwd
if "$2" run -q -n -k job -b "file://$3" -- true 2>>private.err; then exit 3; fi
SH
  chain private-alice "775 alice 64200" "700 alice 0"
  unshare -m sh private.sh "${uid[alice]}" "$alice" "$tmp/private-alice/locks" || fail "in the private group: status $?"
  assert_equal 2 "$(grep -c 'is writable by group 64200' private.err)" "refusals with eve in the private group"
fi

# Access lists.  list_of NAME ENTRY...: $tmp/NAME gets one; an entry is TAG:PERMISSIONS:ID, as in acl(5).  default_list_of:
# what is made in it gets that.
default_list_of() { list=default list_of "$@"; }
list_of() {
  list=${list:-access} python3 - "$tmp/$1" owner:7: "${@:2}" others:5: 2>acl.err <<'PYTHON'
import os, struct, sys
tags = {"owner": 1, "user": 2, "group": 4, "named-group": 8, "mask": 16, "others": 32}
text = struct.pack("<I", 2)
for entry in sys.argv[2:]:
    tag, permissions, number = entry.split(":")
    text += struct.pack("<HHI", tags[tag], int(permissions), int(number or 0xFFFFFFFF))
os.setxattr(sys.argv[1], "system.posix_acl_" + os.environ["list"], text)
PYTHON
}
chain eve-may "755 root 0" "700 alice 0"
if list_of eve-may "user:7:${uid[eve]}" group:5: mask:7:; then
  refuses alice "$tmp/eve-may has an access list that may let others write: use another directory, or chmod g-w $tmp/eve-may" "$tmp/eve-may/locks"
  chmod g-w "$tmp/eve-may"
  allows alice "$tmp/eve-may/locks"
  chain eve-may-read "755 root 0" "700 alice 0"
  list_of eve-may-read "user:5:${uid[eve]}" group:5: mask:5:
  allows alice "$tmp/eve-may-read/locks"
  chain "eve may" "755 root 0" "700 alice 0"
  list_of "eve may" "user:7:${uid[eve]}" group:5: mask:7:
  refuses alice "$tmp/eve may has an access list that may let others write: use another directory, or chmod g-w '$tmp/eve may'" "$tmp/eve may/locks"
  chain team-may "755 root 0" "2770 root $team"
  list_of team-may group:5: "named-group:7:$team" mask:7:
  refuses alice "$tmp/team-may has an access list" "$tmp/team-may/locks"

  # The lock directory itself.
  chain by-group "755 root 0" "2770 root $team"
  list_of by-group/locks "user:7:${uid[eve]}" group:7: mask:7:
  refused="lock directory $tmp/by-group/locks has an access list, or a default one, which may let others than its group write: remove it (setfacl -b -m g::rwx $tmp/by-group/locks; without -m g::rwx if its group does not share the locks)"
  try_path alice "$tmp/by-group/locks"
  assert_equal 77 "$got" "exit status with an access list"
  assert_contains "$(<err)" "$refused" "stderr with an access list"
  try_path alice "$tmp/by-group/locks?trust=all"
  assert_equal 0 "$got" "exit status with an access list and trust=all ($(<err))"
  list_of by-group/locks group:7:  # as that does
  allows alice "$tmp/by-group/locks"
  default_list_of by-group/locks "user:7:${uid[eve]}" group:7: mask:7:
  try_path alice "$tmp/by-group/locks"
  assert_equal 77 "$got" "exit status with a list for what is made in it"
  assert_contains "$(<err)" "$refused" "stderr with a list for what is made in it"
fi

# A directory that one of the group made in a directory that another made.
if unshare -m true 2>unshare.err; then
  cat >member.sh <<'SH'
set -e
cp /etc/passwd passwd.new
echo "bob:x:$1:$2::/nonexistent:/bin/sh" >>passwd.new
mount --bind passwd.new /etc/passwd
"$3" run -q -n -k job -b "file://$4" -- true
SH
  chain bob-in-team "2775 bob $team" "2770 root $team"
  refuses alice "$tmp/bob-in-team belongs to user ${uid[bob]}" "$tmp/bob-in-team/locks"
  unshare -m sh member.sh "${uid[bob]}" "$team" "$alice" "$tmp/bob-in-team/locks" ||
    fail "below a directory of another user of the group: status $?"
fi

# Links.
mkdir -m 1777 "$tmp/sticky"
chain good '755 root 0' '1777 root 0'
for user in alice eve root; do
  ln -s ../good "$tmp/sticky/$user"
  chown -h "${uid[$user]}" "$tmp/sticky/$user"
done
refuses alice "$tmp/sticky/eve is a symbolic link of user ${uid[eve]}: use the path it leads to" "$tmp/sticky/eve/locks"
refuses root "$tmp/sticky/eve is a symbolic link of user ${uid[eve]}" "$tmp/sticky/eve/locks"
refuses root "$tmp/sticky/alice is a symbolic link of user ${uid[alice]}" "$tmp/sticky/alice/locks"
allows alice "$tmp/sticky/alice/locks"
allows alice "$tmp/sticky/root/locks"
# A good link to a bad one.
ln -s sticky/eve "$tmp/to-eves"
refuses alice "$tmp/sticky/eve is a symbolic link of user ${uid[eve]}" "$tmp/to-eves/locks"

# Where root has no number of its own, its directories are those of the owner of "/".
as_alice=(setpriv --reuid "${uid[alice]}" --regid "${uid[alice]}" --clear-groups env HOME=/nonexistent)
if "${as_alice[@]}" unshare -U --map-current-user true 2>unshare.err; then
  "${as_alice[@]}" unshare -U --map-current-user "$tmp/dlock" run -q -n -k job -b "file://$tmp/unreadable/locks" -- true ||
    fail "in a user namespace dlock exits with $?"
fi

# The folders of counters and marks, too: those of the home.
if unshare -m true 2>unshare.err; then
  cat >state.sh <<'SH'
set -e
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
"$2" id -q --name n >/dev/null
chown "$1" /var/lib
if "$2" id --name n 2>state.err; then exit 2; fi
SH
  env -u DLOCK_BACKEND unshare -m sh state.sh "${uid[eve]}" "$root" || fail "the state directory: status $?"
  assert_contains "$(<state.err)" "/var/lib belongs to user ${uid[eve]}" "stderr with the state directory below one of eve"
fi
