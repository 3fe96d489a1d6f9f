#!/usr/bin/env bash
# A lock directory or a lock file in which somebody else could let two holders in is refused, with a
# line that says why; one that is merely full of rubbish is not.
. "$(dirname "$0")/lib.sh"

cd "$tmp"
chmod 711 "$tmp"
cp -- "$DLOCK" "$tmp/dlock"
nobody=(setpriv --reuid 65534 --regid 65534 --clear-groups env HOME=/nonexistent "$tmp/dlock")
# Not if $tmp is noexec.
as_nobody() { ((EUID == 0)) && "${nobody[@]}" version >/dev/null 2>&1; }
dlock=("$DLOCK")

# refuses STATUS TEXT DIRECTORY [KEY]: one line with TEXT, nothing run, and at once.
refuses() {
  local got=0
  timeout 60 "${dlock[@]}" run -k "${4:-job}" -b "file://$3" -- touch "$tmp/ran" >out 2>err || got=$?
  assert_equal "$1" "$got" "exit status for $3 ($(<err))"
  assert_equal 1 "$(wc -l <err)" "lines on stderr for $3"
  assert_contains "$(<err)" "$2" "stderr for $3"
  assert_contains "$(<err)" "${3%/}" "stderr for $3"
  [[ ! -s out ]] || fail "stdout for $3: $(<out)"
  [[ ! -e ran ]] || fail "the command was run although $3 was refused"
}
runs() {
  local got=0
  timeout 60 "${dlock[@]}" run -n -k "${2:-job}" -b "file://$1" -- true 2>err || got=$?
  assert_equal 0 "$got" "exit status for $1 ($(<err))"
}

# Directories.
refuses 69 'does not exist' "$tmp/missing"
[[ ! -e missing ]] || fail "dlock created a lock directory that was named"
touch file
refuses 77 'is not a directory' "$tmp/file"
mkfifo fifo
refuses 77 'is not a directory' "$tmp/fifo"
mkdir -m 0700 real
ln -s real link
refuses 77 'is a symbolic link' "$tmp/link"
refuses 77 'is a symbolic link' "$tmp/link/"
ln -s nowhere dangling
refuses 77 'is a symbolic link' "$tmp/dangling"
mkdir writable
chmod 0777 writable
refuses 77 'is writable by everybody and not sticky' "$tmp/writable"
chmod 0770 writable  # it is shared with a group
runs "$tmp/writable"
chmod 1777 writable
runs "$tmp/writable"
runs "$tmp/writable" of-root
if ((EUID == 0)); then
  mkdir -m 0755 foreign
  chown 65534 foreign
  refuses 77 'belongs to user 65534, not to us (user 0)' "$tmp/foreign"
fi
if as_nobody; then
  dlock=("${nobody[@]}")
  mkdir -m 0755 roots
  refuses 77 'is not writable by us' "$tmp/roots"
  chown 65533 roots
  refuses 77 'belongs to user 65533, not to us (user 65534)' "$tmp/roots"
  chmod 0700 real
  refuses 77 'Permission denied' "$tmp/real"
  # The one of everybody: root's and sticky.  Whose lock file it is does not matter.
  mkdir shared
  chmod 1777 shared
  runs "$tmp/shared"
  runs "$tmp/writable" of-root
  dlock=("$DLOCK")
  runs "$tmp/shared"
fi

# What the path leads through; file-ancestors.sh has those of other users.
mkdir -m 0700 on-the-way on-the-way/locks on-the-way/shared
chmod 0770 on-the-way/shared
chmod 0777 on-the-way
refuses 77 "$tmp/on-the-way is writable by everybody and not sticky (mode 0777): use another directory, or chmod" "$tmp/on-the-way/locks"
refuses 77 "$tmp/on-the-way is writable by everybody" "$tmp/on-the-way/shared"
ln -s on-the-way/.. through-it
refuses 77 "$tmp/on-the-way is writable by everybody" "$tmp/through-it/real"
refuses 77 "$tmp/on-the-way is writable by everybody" "$tmp/on-the-way/../real"
chmod 1777 on-the-way
runs "$tmp/on-the-way/locks"
runs "$tmp/on-the-way/shared"
runs "$tmp/through-it/real"
runs "$tmp/on-the-way/../real"
runs "$tmp//./real"
ln -s "$tmp" absolute
runs "$tmp/absolute/real"
ln -s round round
refuses 77 'Too many levels of symbolic links' "$tmp/round/real"
ln -s nowhere/real to-nowhere
refuses 69 'does not exist' "$tmp/to-nowhere/real"
refuses 77 'is not a directory' "$tmp/file/real"
refuses 77 '/proc/self is a link in /proc, which need not lead where its text says' /proc/self/cwd/real

# Lock files that are none.  dlock neither hangs on them, nor follows them, nor removes them.
mkdir -m 0700 files
echo precious >target
ln -s ../target files/link
refuses 77 'is a symbolic link: remove it' "$tmp/files" link
ln -s ../created files/dangling
refuses 77 'is a symbolic link: remove it' "$tmp/files" dangling
[[ ! -e created ]] || fail "dlock followed a link and created its target"
mkfifo files/fifo
refuses 77 'is not a plain file: remove it' "$tmp/files" fifo
mkdir files/directory
refuses 77 'is a directory: remove it' "$tmp/files" directory
ln target files/hard
refuses 77 'has other names (hard links): remove it' "$tmp/files" hard
assert_equal precious "$(<target)" "what is in a file that lock files were links to"
[[ -L files/link && -p files/fifo && -d files/directory ]] || fail "dlock removed what it refused"
if ((EUID == 0)); then
  touch files/foreign
  chown 65534 files/foreign
  refuses 77 'belongs to user 65534, not to us (user 0)' "$tmp/files" foreign
fi

# Rubbish in a lock file: the lock works, there is a warning and no fence.
rubbish() {
  local got=0 held
  # shellcheck disable=SC2016  # for the inner shell
  timeout 60 "$DLOCK" run -k "$1" -b "file://$tmp/files" -- \
    sh -c 'echo "fence=$DLOCK_FENCE"; touch "$1"; exit 3' sh "$tmp/$1.ran" >out 2>err || got=$?
  assert_equal 3 "$got" "exit status with rubbish in the lock file $1 ($(<err))"
  assert_equal fence= "$(<out)" "DLOCK_FENCE with rubbish in the lock file $1"
  assert_equal 1 "$(wc -l <err)" "lines on stderr with rubbish in the lock file $1"
  assert_contains "$(<err)" "$tmp/files/$1 has content that dlock did not write"
  # shellcheck disable=SC2016  # for the inner shell
  held='got=0; "$0" run -q -n -k "$1" -b "$2" -- true || got=$?; exit $got'
  got=0
  "$DLOCK" run -q -k "$1" -b "file://$tmp/files" -- \
    env -u DLOCK_SUPERVISORS sh -c "$held" "$DLOCK" "$1" "file://$tmp/files" || got=$?
  assert_equal 75 "$got" "status of a second holder beside one with rubbish in the lock file $1"
}
echo 'garbage' >files/garbage
rubbish garbage
assert_equal garbage "$(<files/garbage)" "the rubbish, afterwards"
printf '\0\377\033[31m{"id": 5' >files/binary
rubbish binary
head -c 200 /dev/zero | tr '\0' '{' >files/braces
rubbish braces
truncate -s 1G files/sparse
rubbish sparse
assert_equal 1073741824 "$(stat -c %s files/sparse)" "size of the 1 GB of rubbish, afterwards"
# A good header with rubbish behind it, or one cut short.
runs "$tmp/files" good
{ head -c 110 files/good; echo 'rubbish'; } >files/torn
runs "$tmp/files" torn
: >files/empty
runs "$tmp/files" empty
assert_equal '' "$(<err)" "stderr with an empty lock file"

# A full disk and a read-only one, where they can be had.
cat >mounts.sh <<'SH'
set -e
mkdir full read-only
mount -t tmpfs -o size=64k,mode=0700 none full
mount -t tmpfs -o mode=0700 none read-only
"$DLOCK" run -k old -b "file://$PWD/full" -- true
"$DLOCK" run -k job -b "file://$PWD/read-only" -- true
mount -o remount,ro read-only
touch mounted
cat /dev/zero >full/fill 2>/dev/null || true
try() {
  got=0
  timeout 60 "$DLOCK" run -k "$2" -b "file://$PWD/$1" -- touch "$1-$2-ran" 2>"$1-$2-err" || got=$?
  echo "$got" >"$1-$2-status"
}
try full new
try full old
try read-only job
rm full/fill
try full again
SH
if ((EUID == 0)) && { unshare --mount sh mounts.sh 2>mounts-err || [[ -e mounted ]]; }; then
  [[ -e full-again-status ]] || fail "the part with mounts failed: $(<mounts-err)"
  assert_equal 69 "$(<full-new-status)" "status on a full disk ($(<full-new-err))"
  assert_contains "$(<full-new-err)" 'No space left on device' "stderr on a full disk"
  assert_equal 1 "$(wc -l <full-new-err)" "lines on stderr on a full disk"
  [[ ! -e full-new-ran ]] || fail "the command was run without a lock, on a full disk"
  assert_equal 0 "$(<full-old-status)" "status on a full disk where the lock file was before ($(<full-old-err))"
  assert_equal 0 "$(<full-again-status)" "status on the disk that was full ($(<full-again-err))"
  [[ $(<read-only-job-status) == 69 || $(<read-only-job-status) == 77 ]] ||
    fail "on a read-only mount dlock exits with $(<read-only-job-status)"
  assert_contains "$(<read-only-job-err)" 'Read-only file system' "stderr on a read-only mount"
  [[ ! -e read-only-job-ran ]] || fail "the command was run without a lock, on a read-only mount"
else
  echo "not tested: full and read-only disks ($(cat mounts-err 2>/dev/null || echo 'not root'))" >&2
fi
