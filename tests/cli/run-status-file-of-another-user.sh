#!/usr/bin/env bash
# What another user put where the status file goes is neither written to nor opened, and nothing is started: he could
# read the outcome, or write one of his own.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/users.sh"
need python3
export DLOCK=$root
mkdir -m 1777 "$tmp/sticky"
sticky=$tmp/sticky

# of NAME USER: what was just made belongs to USER.
of() { chown -h "${uid[$2]}" "$sticky/$1"; }
# write_to NAME USER: a run of this user with this status file; sets got, ./err and ./out.
write_to() {
  got=0
  rm -f ran
  timeout 60 "${!2}" run -q -k job -b "file://$tmp/$2-locks" --status-file "$sticky/$1" -- \
    touch "$tmp/work/ran" >out 2>err || got=$?
}
refuses() { # NAME TEXT
  local user
  for user in alice root; do
    write_to "$1" $user
    assert_equal "64/1/" "$got/$(wc -l <err)/$(<out)" "status, lines of stderr and stdout of $user with $1 ($(<err))"
    assert_contains "$(<err)" "status file $sticky/$1: $2" "stderr of $user with $1"
    [[ ! -e ran ]] || fail "the command of $user was run with $1"
    [[ -e $sticky/$1 || -L $sticky/$1 ]] || fail "$user removed $1"
  done
}
for user in alice root; do install -d -m 700 -o "${uid[$user]}" "$tmp/$user-locks"; done

# A FIFO of eve's, who would read the outcome; links, which would have us write to what she chose; and what is no file.
mkfifo -m 666 "$sticky/fifo"
exec {eves}<>"$sticky/fifo"
echo precious >"$tmp/precious"
chmod 666 "$tmp/precious"
links=0
for target in /dev/fd/1 /dev/stdout /dev/null "$tmp/precious" fifo nowhere; do ln -s "$target" "$sticky/link-$((++links))"; done
mkdir "$sticky/directory"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$sticky/socket"
mknod -m 666 "$sticky/no-device" c 250 77 2>mknod.err || rm -f "$sticky/no-device"
for path in "$sticky"/*; do
  of "${path##*/}" eve
  refuses "${path##*/}" 'is no regular file: give another path, or /dev/fd/N'
done
if read -r -t 0 -u "$eves"; then fail "the outcome was written to eve's FIFO"; fi
exec {eves}>&-
assert_equal precious "$(<"$tmp/precious")" "the file that eve's link leads to"

# A file of another user can be replaced where he who runs dlock may remove it.
echo eves >"$sticky/file"
of file eve
write_to file alice
assert_equal 64 "$got" "status with a file of eve in a sticky directory"
assert_contains "$(<err)" "status file $sticky/file: Operation not permitted" "stderr with a file of eve"
assert_equal eves "$(<"$sticky/file")" "the file of eve"
install -d -m 770 -g $team "$tmp/team"
for user in alice bob root; do
  "${!user}" run -q -k job -b "file://$tmp/team" --status-file "$tmp/team/status" -- true
  assert_equal "${uid[$user]}" "$(stat -c %u "$tmp/team/status")" "the owner of the status file of $user"
done

# In a sticky directory the name is never free for others, not even while the command runs.
: >"$sticky/mine"
of mine alice
DLOCK=$alice start a -k job -b "file://$tmp/alice-locks" --status-file "$sticky/mine"
runs a
if setpriv --reuid "${uid[eve]}" --regid "${uid[eve]}" --clear-groups sh -c "echo '{}' >$sticky/mine" 2>eve.err; then
  fail "eve could write a status file while alice's command ran"
fi
assert_equal "${uid[alice]} 0" "$(stat -c '%u %s' "$sticky/mine")" "owner and size of the status file while the command runs"
finish a
assert_contains "$(<"$sticky/mine")" '"outcome":"completed"' "the status file in a sticky directory"
