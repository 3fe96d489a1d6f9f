#!/usr/bin/env bash
# Without a directory that is named, a user's locks are in one place whatever the environment, /run/dlock for root and
# /tmp/dlock-UID for others, which dlock makes for this user alone.  If it cannot be trusted, dlock refuses.
# This script has a /run and a /tmp of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
[[ -n ${own_mounts-} ]] || skip "may not have mounts of its own"
[[ $tmp != /tmp/* ]] || skip "there is no /dev/shm for the files of this test"
. "$(dirname "$0")/users.sh"
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=1777 none /tmp
mkdir -m 1777 /run/lock
unset DLOCK_BACKEND XDG_RUNTIME_DIR TMPDIR
export DLOCK=$root  # the one under test may be below /tmp
alices=/tmp/dlock-${uid[alice]}
bobs=/tmp/dlock-${uid[bob]}
xdg=$tmp/xdg
install -d -m 700 -o "${uid[alice]}" "$xdg"

# places: all files where locks could be.
places() { find /run /tmp "$xdg" "$tmp/home" | sort; }

# The same place whatever the environment.
places >before
for mask in 000 022 077; do
  umask $mask
  expect_status 0 "$root" run -q -n -k job -- true
  assert_equal '700 0' "$(stat -c '%a %u' /run/dlock)" "root's directory with umask $mask"
  expect_status 0 env XDG_RUNTIME_DIR="$xdg" TMPDIR="$xdg" "$alice" run -q -n -k job -- true
  assert_equal "700 ${uid[alice]}" "$(stat -c '%a %u' "$alices")" "alice's directory with umask $mask"
  [[ -f /run/dlock/job && -f $alices/job ]] || fail "no lock files of job: $(find /run "$alices" -name 'job*')"
  assert_equal '' "$(places | comm -13 before - | grep -vE "^(/run/dlock|$alices)(/|\$)" || true)" "what was made elsewhere"
  rm -r /run/dlock "$alices"
done
umask 022

# One user's runs exclude each other, with XDG_RUNTIME_DIR and without, and see each other.
other=$tmp/other
install -d -m 700 -o "${uid[alice]}" "$other"
worlds=("env XDG_RUNTIME_DIR=$xdg" "env -u XDG_RUNTIME_DIR" "env XDG_RUNTIME_DIR=$other TMPDIR=$other" "env -i")
for user in alice root; do
  for first in "${worlds[@]}"; do
    DLOCK=$tmp/in-a-world
    printf '#!/bin/sh\nexec %s "%s" "$@"\n' "$first" "${!user}" >"$DLOCK"
    chmod 755 "$DLOCK"
    holder a -k job
    for second in "${worlds[@]}"; do
      # shellcheck disable=SC2086  # words
      expect_status 75 $second "${!user}" run -q -n -k job -- true
      # shellcheck disable=SC2086  # words
      assert_equal "PID ${pid[a]}" "$($second "${!user}" list -q -o pid | xargs)" "the list, $second"
    done
    finish a
  done
done
DLOCK=$root
# Users do not share it.
DLOCK=$alice holder a -k job
expect_status 0 "$root" run -q -n -k job -- true
expect_status 0 "$bob" run -q -n -k job -- true
finish a
rm -r "$alices" "$bobs" /run/dlock

# Another user cannot stop root's runs by what he makes where everybody may write.
for name in /run/lock/dlock /tmp/dlock /tmp/dlock-0 /tmp/run "$xdg/dlock"; do
  for kind in directory link file; do
    case $kind in
      directory) mkdir -m 700 "$name" ;;
      link) ln -s "$tmp/home" "$name" ;;
      file) touch "$name" ;;
    esac
    chown -h "${uid[eve]}" "$name"
    expect_status 0 env XDG_RUNTIME_DIR="$xdg" "$root" run -n -k job -- true 2>err
    assert_equal '' "$(<err)" "stderr with a $kind $name of eve"
    [[ -f /run/dlock/job ]] || fail "with a $kind $name of eve root's locks are elsewhere"
    rm -r "$name" /run/dlock
  done
done

# refused USER DIRECTORY WHAT: every command is, in one line that names the directory; nothing is run or made.
refused() {
  local user=$1 arguments got
  places >before
  for arguments in 'run -k job -- touch ran' 'list' 'show job' 'force-release --yes job'; do
    got=0
    # shellcheck disable=SC2086  # words
    XDG_RUNTIME_DIR=$xdg "${!user}" $arguments >out 2>err </dev/null || got=$?
    assert_equal '77/1/' "$got/$(wc -l <err)/$(<out)" "status, lines of stderr, stdout of dlock $arguments, $3 ($(<err))"
    assert_contains "$(<err)" "$2" "stderr of dlock $arguments, $3"
    assert_contains "$(<err)" "name a directory of your own: --backend file:///DIR" "the way out, dlock $arguments, $3"
  done
  [[ ! -e ran ]] || fail "the command was run with $3"
  assert_equal '' "$(places | comm -13 before -)" "what was made with $3"
}
for user in alice root; do
  directory=$alices
  [[ $user == alice ]] || directory=/run/dlock
  for mode in 700 755 1777; do
    install -d -m $mode -o "${uid[bob]}" "$directory"
    refused $user "$directory" "a directory of somebody else, mode $mode"
  done
  if [[ $user == alice ]]; then
    chown 0 "$directory"
    refused $user "$directory" "a directory of root, mode 1777"
  fi
  rmdir "$directory"
  install -d -m 700 -o "${uid[$user]}" "$directory.real"
  for target in "$directory.real" "$directory.nowhere"; do
    ln -s "$target" "$directory"
    chown -h "${uid[$user]}" "$directory"
    refused $user "$directory" "a symbolic link to $target"
    rm "$directory"
  done
  touch "$directory"
  chown "${uid[$user]}" "$directory"
  refused $user "$directory" "a file in its place"
  rm "$directory"
  rmdir "$directory.real"
done

# A user who may rename it, because /tmp or /run is not as it should be, could let two holders in.
for user in alice root; do
  directory=$alices parent=/tmp
  [[ $user == alice ]] || directory=/run/dlock parent=/run
  was=$(stat -c %a $parent)
  install -d -m 700 -o "${uid[$user]}" "$directory"
  chmod 777 $parent
  refused $user "$parent is writable by everybody and not sticky" "everybody in $parent"
  chmod "$was" $parent
  chown "${uid[eve]}" $parent
  refused $user "$parent belongs to user ${uid[eve]}" "eve's $parent"
  chown 0 $parent
  rmdir "$directory"
done

# Where it cannot be made, that is an error, and no other place is used.
mount -o remount,ro /tmp
mount -o remount,ro /run
for user in alice root; do
  places >before
  got=0
  XDG_RUNTIME_DIR=$xdg "${!user}" run -k job -- touch ran 2>err || got=$?
  [[ $got == @(69|77) ]] || fail "where $user's directory cannot be made, dlock run exits with $got: $(<err)"
  assert_contains "$(<err)" 'Read-only file system' "stderr"
  [[ ! -e ran ]] || fail "the command was run without a lock"
  assert_equal '' "$(places | comm -13 before -)" "what was made instead"
done
mount -o remount,rw /run
mkdir -m 700 /run/dlock
mount -o remount,ro /run
expect_status 69 "$root" run -k job -- touch ran 2>err
assert_contains "$(<err)" "name a directory of your own: --backend file:///DIR" "stderr with a directory that is read-only"
