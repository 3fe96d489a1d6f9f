#!/usr/bin/env bash
# What another user put where the status file goes is neither written to nor opened, and nothing is started: he could
# read the outcome, or write one of his own.  Nor is a device opened to find out what it is.
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

# FIFOs.  Eve reads hers, and would write what she likes.
mkfifo -m 666 "$sticky/fifo"
of fifo eve
exec {eves}<>"$sticky/fifo"
refuses fifo "belongs to user ${uid[eve]}: give another path"
if read -r -t 0 -u "$eves"; then fail "the outcome was written to eve's FIFO"; fi
exec {eves}>&-

# Links.
echo precious >"$tmp/precious"
chmod 666 "$tmp/precious"
for target in /dev/fd/1 /proc/self/fd/1 /dev/stdout /dev/null "$tmp/precious" nowhere; do
  ln -s "$target" "$sticky/link"
  of link eve
  refuses link "is a link of user ${uid[eve]}: give another path"
  ln -s link "$sticky/two"
  refuses two "leads to $sticky/link, which is a link of user ${uid[eve]}"
  rm "$sticky/link" "$sticky/two"
done
assert_equal precious "$(<"$tmp/precious")" "the file that eve's link leads to"
ln -s fifo "$sticky/to-fifo"
refuses to-fifo "leads to $sticky/fifo, which belongs to user ${uid[eve]}"
ln -s round "$sticky/round"
refuses round 'Too many levels of symbolic links'

# What is no file, no pipe and no terminal, whoever has it.
mkdir "$sticky/directory"
python3 -c 'import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])' "$sticky/socket"
odd=(directory socket)
if mknod -m 666 "$sticky/block" b 240 0 2>mknod.err; then odd+=(block); fi
if mknod -m 666 "$sticky/zero" c 1 5 2>mknod.err; then odd+=(zero); fi
if mknod -m 666 "$sticky/no-device" c 250 77 2>mknod.err; then odd+=(no-device); fi
for name in "${odd[@]}"; do
  refuses "$name" 'is '
  ln -s "$name" "$sticky/to-$name"
  refuses "to-$name" "leads to $sticky/$name, which is "
done
if command -v strace >/dev/null; then
  for name in "${odd[@]}"; do
    strace -f -qq -e trace=open,openat -o trace "$root" run -k job --status-file "$sticky/$name" -- true 2>err && fail "$name was taken"
    assert_equal '' "$(grep -F "$sticky/$name\"" trace | grep -v O_PATH || true)" "how $name was opened"
  done
fi

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

# Good ones: what is ours or root's.
says() { # TEXT WHAT
  assert_contains "$1" '"outcome":"completed"' "what comes out of $2"
}
for owner in alice root; do
  mkfifo -m 666 "$sticky/$owner-fifo"
  of "$owner-fifo" "$owner"
  ln -s "$owner-fifo" "$sticky/$owner-link"
  of "$owner-link" "$owner"
  for name in "$owner-fifo" "$owner-link"; do
    exec {fifo}<>"$sticky/$name"
    write_to "$name" alice
    assert_equal 0 "$got" "status with $name ($(<err))"
    read -r -t 30 line <&"$fifo" || fail "nothing comes out of $name"
    says "$line" "$name"
    exec {fifo}<&-
    [[ -p $sticky/$name ]] || fail "the status file has taken the place of $name"
  done
done
run=("$alice" run -q -k job -b "file://$tmp/alice-locks")
expect_status 0 "${run[@]}" --status-file /dev/null -- true
[[ -c /dev/null ]] || fail "the status file has taken the place of /dev/null"
says "$("${run[@]}" --status-file /dev/stdout -- true)" /dev/stdout
"${run[@]}" --status-file >(cat >substituted) -- true
wait_until 30 test -s substituted
says "$(<substituted)" "a process substitution"
# shellcheck disable=SC2016  # for the inner shell
says "$(sh -c '"$@" --status-file "/proc/$$/fd/1" -- true' sh "$root" run -q -k job -b "file://$tmp/root-locks" | cat)" '/proc/PID/fd/1'
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
  # shellcheck disable=SC2016  # for the inner shell
  for path in /dev/tty '$(tty)'; do
    says "$(script -qec "$root run -q -k job -b file://$tmp/root-locks --status-file $path -- true" /dev/null </dev/null)" "a terminal as $path"
  done
fi
