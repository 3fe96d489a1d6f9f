#!/usr/bin/env bash
# One lock of the file backend has one place for its marks and counters, however its directory is named.  By default
# they are where they outlive a boot, and where nobody else can write.
# This script has a /run, a /tmp and a /var/lib of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"
[[ -n ${own_mounts-} ]] || skip "may not have mounts of its own"
[[ $tmp != /tmp/* ]] || skip "there is no /dev/shm for the files of this test"
. "$(dirname "$0")/users.sh"
mount -t tmpfs -o mode=755 none /run
mount -t tmpfs -o mode=755 none /var/lib
mount -t tmpfs -o mode=1777 none /tmp
unset DLOCK_BACKEND TMPDIR
ln -s /run "$tmp/link"
touch runs
chmod 666 runs

# job USER KEY [OPTIONS...]: its job, which adds a line to ./runs.
job() { "${!1}" once -q -k "$2" --remember 1h "${@:3}" -- sh -c "echo $2 >>runs"; }
# runs N WHAT
runs() { assert_equal "$1" "$(wc -l <runs)" "runs, $2"; }

# The default directory, and other paths to it.
directory=(file:///run/dlock "file://$tmp/link/dlock" file:///run/../run/dlock)
job root a
for url in "${directory[@]}"; do job root a -b "$url"; done
runs 1 "the default directory is named"
job root b -b "file://$tmp/link/dlock"
job root b
runs 2 "the default directory comes after another path to it"
assert_equal 1 "$("$root" id -q --name order)"
assert_equal 2 "$("$root" id -q --name order -b "file://$tmp/link/dlock")"
assert_equal 3 "$("$root" id -q --name order)"
assert_equal /var/lib/dlock/~done "$(find /run /var/lib -name '~done')"

# It is shared: all who share it have the same marks and counters.
rm -r /run/dlock
install -d -m 2770 -g $team /run/dlock
expect_status 77 "$root" once -k c --remember 1h -- touch ran 2>err
for user in root alice bob root; do
  for url in "${directory[@]:0:2}"; do
    [[ $user == root || $url == file:///run/dlock ]] || continue
    job $user c -b "$url"
  done
done
runs 3 "the default directory of root is shared"
taken=$(for user in root alice bob root; do "${!user}" id -q --name order -b file:///run/dlock; done)
assert_equal '1 2 3 4' "$(xargs <<<"$taken")" "numbers of several users"
rm -r /run/dlock

# What others could write to is not trusted, nor what belongs to somebody else.
distrusted() {
  expect_status 77 job root d 2>err
  assert_contains "$(<err)" 'lock directory /var/lib/dlock ' "stderr"
  expect_status 77 "$root" list --done 2>err
  expect_status 77 "$root" id --name order 2>err
  assert_contains "$(<err)" 'lock directory /var/lib/dlock ' "stderr"
}
for mode in 770 1777; do
  chmod $mode /var/lib/dlock
  distrusted
done
chmod 700 /var/lib/dlock
chown "${uid[alice]}" /var/lib/dlock
distrusted
chown 0 /var/lib/dlock
runs 3 "with directories that cannot be trusted"

# A home that the user may not write to, as /var/www.
install -d -m 755 "$tmp/www"
{
  cat /etc/passwd
  echo "alice:x:${uid[alice]}:${uid[alice]}::$tmp/www:/bin/sh"
} >passwd
chmod 644 passwd
mount --bind passwd /etc/passwd
expect_status 77 job alice e 2>err
assert_contains "$(<err)" "cannot create directory $tmp/www/.local: Permission denied" "stderr"
assert_contains "$(<err)" "--backend file:///DIRECTORY" "stderr"
expect_status 0 "$alice" list --done
runs 3 "without a place for marks"
