#!/usr/bin/env bash
# Without a directory that is named, the counters of the file backend are where they outlive a boot; with one, they are
# below it, for all who share it.  A full disk gives no numbers, and repeats none.
# This script has a /run, a /tmp and a /var/lib of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
[[ -n ${own_mounts-} ]] || skip "may not have mounts of its own"
[[ $tmp != /tmp/* ]] || skip "there is no /dev/shm for the files of this test"
. "$(dirname "$0")/users.sh"
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
mount -t tmpfs -o mode=1777 none /tmp
export DLOCK_QUIET=1
unset DLOCK_BACKEND TMPDIR

# Without a directory.
umask 000
assert_equal 1 "$("$root" id --name order)"
assert_equal 2 "$(HOME=$tmp/home XDG_STATE_HOME=$tmp "$root" id --name order)"
assert_equal '700 0' "$(stat -c '%a %u' /var/lib/dlock)" "root's directory"
assert_equal 3 "$(DLOCK_BACKEND=file:///run/dlock "$root" id --name order)"  # the same location, the same counter
assert_equal /var/lib/dlock/~ids/order "$(find /var/lib/dlock -type f | sort)"
[[ ! -e $tmp/home/.local ]] || fail "there is something in \$HOME"
expect_status 77 "$alice" id --name order >out 2>err
assert_equal '1/' "$(wc -l <err)/$(<out)" "lines on stderr, and stdout ($(<err))"
assert_contains "$(<err)" 'has no home directory'
home=$tmp/alices
install -d -m 750 -o "${uid[alice]}" "$home"
{
  cat /etc/passwd
  echo "alice:x:${uid[alice]}:${uid[alice]}::$home:/bin/sh"
} >passwd
chmod 644 passwd
mount --bind passwd /etc/passwd
assert_equal 1 "$("$alice" id --name order)"
assert_equal 2 "$(XDG_STATE_HOME=$tmp "$alice" id --name order)"
assert_equal 4 "$("$root" id --name order)"
for folder in .local .local/state .local/state/dlock; do
  assert_equal "700 ${uid[alice]}" "$(stat -c '%a %u' "$home/$folder")" "$folder"
done
assert_equal '' "$(find /run /tmp -name '*ids*')" "what would be gone after a boot"
umask 022

# A directory that is shared.
for kind in group everybody; do
  shared_directory $kind
  for i in 1 4 7; do
    assert_equal $i "$("$alice" id --name order)" "alice's number in the directory of $kind"
    assert_equal $((i + 1)) "$("$bob" id --name order)" "bob's"
    assert_equal $((i + 2)) "$("$root" id --name order)" "root's"
  done
  assert_equal 3 "$({ "$alice" id --snowflake; "$bob" id --snowflake; "$root" id --snowflake; } | sort -u | wc -l)"
done
assert_equal 10 "$("$eve" id --name order)"
export DLOCK_BACKEND=file://$tmp/group
expect_status 77 "$eve" id --name order 2>err

# A full disk.  A process takes a number, or has an error.
mkdir -m 700 "$tmp/full"
mount -t tmpfs -o mode=700,size=64k none "$tmp/full"
at_exit() { umount -l "$tmp/full"; }
export DLOCK_BACKEND=file://$tmp/full
id() { "$root" id --name order; }
id >numbers
dd if=/dev/zero of="$tmp/full/filler" bs=4k 2>dd.err && fail "the disk is not full"
for ((i = 0; i < 5; ++i)); do
  got=0
  id >>numbers 2>err || got=$?
  ((got == 0)) || assert_equal '69 1' "$got $(wc -l <err)" "status, and lines on stderr ($(<err))"
done
((got == 69)) || fail "a full disk was no error"
assert_contains "$(<err)" 'No space left on device'
rm "$tmp/full/filler"
for ((i = 0; i < 5; ++i)); do id >>numbers; done
assert_equal '' "$(uniq -d numbers)" "numbers that were given twice ($(xargs <numbers))"
sort -nc numbers || fail "they do not grow: $(xargs <numbers)"
(($(wc -l <numbers) >= 6)) || fail "too few: $(xargs <numbers)"
