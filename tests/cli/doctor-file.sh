#!/usr/bin/env bash
# What dlock doctor finds wrong with a directory of locks.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/doctor.sh"
need strace
cd "$tmp"
unset DLOCK_BACKEND

disk=$(mktemp -d /var/tmp/dlock-test.XXXXXX)
at_exit() { rm -rf -- "$disk"; }
doctor 0 -b "file://$disk" --strict
finds note file-scope 'locks are seen by this user on this machine only'
finds ok file-system local
finds ok file-directory "owner $(id -un), mode 0700"
finds ok try-force-release

# Done-marks are tried where there are some, since to make a place for them is a change that stays.
finds_no try-done-mark
"$DLOCK" once -q -b "file://$disk" --remember 1h -k job -- true
doctor 0 -b "file://$disk" --strict
finds ok try-done-mark

# In memory, on a network.
[[ $(stat -fc %T "$locks") != tmpfs ]] || {
  doctor 0 -b "file://$locks"
  finds warn file-system 'in memory (tmpfs)'
}
strace -f -qq -o trace -e trace=fstatfs -e 'inject=fstatfs:poke_exit=@arg2=6969000000000000' \
  "$DLOCK" doctor -b "file://$disk" >out && fail "a directory on NFS is no failure: $(<out)"
finds FAIL file-system NFS

# A directory that others may write to, a link, one that is missing.
chmod 0777 "$disk"
doctor 77 -b "file://$disk"
finds FAIL file-directory 'is writable by everybody and not sticky: chmod o-w or chmod +t it'
finds_no try-acquire
chmod 0700 "$disk"
ln -s "$disk" link
doctor 77 -b "file://$tmp/link"
finds FAIL file-directory 'is a symbolic link'
doctor 69 -b "file://$tmp/missing"
finds FAIL file-directory 'does not exist: create it'

((EUID == 0)) && unshare --mount true 2>/dev/null || exit 0
cp "$DLOCK" dlock  # this one may be below /tmp

# The directory of a user, which root does not see.
unshare --mount bash -c 'mount -t tmpfs none /tmp && mkdir -m 700 /tmp/dlock-61234 && chown 61234 /tmp/dlock-61234 &&
  exec ./dlock doctor' >out
finds note file-other-users '/tmp/dlock-61234 (61234)'

# The usual directory is not made for this.
unshare --mount bash -c 'mount -t tmpfs none /tmp && cp dlock /tmp && chmod 1777 /tmp && unset DLOCK_BACKEND &&
  setpriv --reuid 61235 --regid 61235 --clear-groups /tmp/dlock doctor && ls -d /tmp/*' >out
finds note file-directory '/tmp/dlock-61235: is not there yet'
assert_equal /tmp/dlock "$(tail -n 1 out)" "what is in /tmp"

# A service with a /tmp of its own.
mkdir -p private/systemd-private-x/tmp mounted
unshare --mount bash -c 'mount --bind private/systemd-private-x/tmp mounted && mkdir -m 700 mounted/locks &&
  exec ./dlock doctor -b "file://$PWD/mounted/locks"' >out
finds warn file-private-tmp "$tmp/mounted belongs to one service (PrivateTmp)"
