#!/usr/bin/env bash
# A config file that cannot be reached never makes a lock local in silence: below a directory that may not be searched
# (HOME of root, but not its uid) it is passed over and named; a link that leads nowhere, or a file that may not be
# read, is refused; --config '' goes without.  This script has a /tmp of its own.
if [[ -z ${own_mounts-} ]] && unshare -m true 2>/dev/null; then own_mounts=1 exec unshare -m bash "$0" "$@"; fi
. "$(dirname "$0")/lib.sh"

cd "$tmp"
unset DLOCK_BACKEND  # it would hide what the file says
config=$HOME/.config/dlock/config.json

# runs STDERR ARGUMENTS...: dlock run -q ARGUMENTS runs its command, and says STDERR, or nothing if that is empty.
runs() {
  local want=$1 got=0
  shift
  "${as[@]}" "$DLOCK" run -q -k job "$@" -- echo ran >out 2>err || got=$?
  assert_equal "0 ran" "$got $(<out)" "status and output with $* ($(<err))"
  if [[ -n $want ]]; then
    assert_contains "$(<err)" "$want" "stderr with $*"
    assert_equal 1 "$(wc -l <err)" "lines on stderr with $*"
  else
    assert_equal "" "$(<err)" "stderr with $*"
  fi
}
# refused TEXT ARGUMENTS...
refused() {
  local want=$1 got=0
  shift
  "${as[@]}" "$DLOCK" run -q -k job "$@" -- echo ran >out 2>err || got=$?
  assert_equal "78 " "$got $(<out)" "status and output with $* ($(<err))"
  assert_contains "$(<err)" "$want" "stderr with $*"
  assert_contains "$(<err)" "--config ''" "stderr with $*"
}
as=(env)
here=(-b "file://$locks")

# A link that leads nowhere: of the file, of a directory above it, of the home directory.
mkdir -p "$HOME/.config/dlock"
ln -s ..data/config.json "$config"
refused "$config: is a link that leads nowhere; is something not mounted?"
refused "$config: is a link that leads nowhere" "${here[@]}"
runs "" --config '' "${here[@]}"
rm -r "$HOME/.config"
ln -s "$tmp/not-mounted" "$HOME/.config"
refused "$config: $HOME/.config is a link that leads nowhere"
mkdir "$tmp/not-mounted"
runs "" "${here[@]}"
rm -r "$tmp/not-mounted" "$HOME/.config"
ln -s "$tmp/not-mounted" "$tmp/home-link"
HOME=$tmp/home-link refused "$tmp/home-link/.config/dlock/config.json: $tmp/home-link is a link that leads nowhere"
touch "$tmp/a-file"
HOME=$tmp/a-file runs "" "${here[@]}"
HOME=$tmp/nothing/there runs "" "${here[@]}"
XDG_CONFIG_HOME='' HOME='' runs "" "${here[@]}"

# Another user's home.
[[ -n ${own_mounts-} && $tmp != /tmp/* ]] || exit 0
need setpriv
chmod 755 "$tmp"
cp -- "$DLOCK" dlock
DLOCK=$tmp/dlock  # the one under test may be below /tmp
mount -t tmpfs -o mode=1777 none /tmp
install -d -m 700 roothome
install -d -m 700 -o 65534 "$locks-of-65534"
as=(env HOME="$tmp/roothome" setpriv --reuid 65534 --regid 65534 --clear-groups)
here=(-b "file://$locks-of-65534")
runs "" "${here[@]}"
runs "" --config '' "${here[@]}"
line="$tmp/roothome/.config/dlock/config.json cannot be reached"
mkdir -p roothome/.config/dlock
echo '{"backend": "redis://127.0.0.1:1"}' >roothome/.config/dlock/config.json
runs "$line"
"${as[@]}" "$DLOCK" list >out 2>err
assert_contains "$(<err)" "$line" "stderr of list"
expect_status 64 "${as[@]}" "$DLOCK" run -k job -b prod -- true 2>err
assert_contains "$(<err)" "config.json cannot be reached" "stderr with a profile of that file"
runs "" --config ''
DLOCK_BACKEND=${here[1]} runs ""
# It says nothing about a server that the command line names.
expect_status 69 "${as[@]}" "$DLOCK" run -n -q -k job -b redis://127.0.0.1:1 -- true 2>err
assert_lacks "$(<err)" "$line" "stderr with a server"

# It is there, and may not be read.
chmod 711 roothome roothome/.config roothome/.config/dlock
chmod 600 roothome/.config/dlock/config.json
refused "$tmp/roothome/.config/dlock/config.json: Permission denied (--config '' goes without it)" "${here[@]}"
runs "" --config '' "${here[@]}"
