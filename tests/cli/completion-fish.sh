#!/usr/bin/env bash
# After an installation TAB in fish offers commands, options, choices, backends and profiles, and completes
# the user's own command behind "--".
. "$(dirname "$0")/lib.sh"

need fish

cd "$tmp"

unset XDG_DATA_DIRS

# Installed as by "install.sh --prefix ~/.local".
cmake --install "${DLOCK%/src/dlock}" --prefix "$HOME/.local" >install.log || fail "$(<install.log)"
export PATH=$HOME/.local/bin:$PATH
. "$TEST_SOURCE/tests/cli/profiles.sh"
touch some-file

# What is offered for a command line, one word per line, without descriptions.  Only what this test has
# installed counts: dlock can be installed on this machine, too.
# shellcheck disable=SC2016  # the $ is for fish
offers() {
  fish -C 'set fish_complete_path (string match "$HOME/*" $fish_complete_path)' -c "complete -C '$1'" |
    cut -f 1
}

expect() { # what is offered, space-separated, then the command line
  local got
  got=$(offers "$2" | paste -sd ' ')
  [[ $got == "$1" ]] || fail "\"$2<TAB>\" offers \"$got\", not \"$1\""
}

expect 'run' 'dlock ru'
expect '--on-lost' 'dlock run --on-l'
expect 'ignore kill term' 'dlock run --on-lost '
expect 'file' 'dlock run -b fi'
expect 'prod' 'dlock run --backend pro'
expect '' 'dlock run --key '
expect '--json' 'dlock backends --j'
expect '--export=fish --export=sh' 'dlock acquire --export='
expect '--token-file' 'dlock release --tok'
expect 'version' 'dlock help ver'
expect 'some-file' 'dlock run --status-file some'
expect 'some-file' 'dlock run -k job -- cat some'
grep -qx unshare <(offers 'dlock run -k job -- unshar') ||
  fail 'behind "--" no commands are offered'
! offers 'dlock run -k job -- ls --on' | grep -q on-lost ||
  fail "behind \"--\" dlock's own options are offered"

# The name of a profile is never run: not by TAB, and not by what TAB puts on the command line.
offers 'dlock run -b ' >offered
assert_quiet "by TAB"
for name in "${profiles[@]}"; do
  grep -qxF -- "$name" offered || fail "the profile $name is not offered, but: $(<offered)"
done
if command -v python3 >/dev/null; then
  mkdir "$HOME/.local/share/fish/generated_completions"  # or fish makes it, from all manual pages
  # shellcheck disable=SC2016,SC1003  # they are not to be expanded
  python3 "$TEST_SOURCE/tests/cli/terminal.py" '$status' true fish -i -- pro two a '\`' '\$\(' '\$\{' v it '\*' '\{' s 'i\\' ||
    fail "what TAB puts on the command line of a terminal is no profile"
  assert_quiet "on a terminal"
fi

# Once its file is gone, nothing else offers them.
rm "$HOME/.local/share/fish/vendor_completions.d/dlock.fish"
expect '' 'dlock run --on-l'

# fish does not look below /usr/local.
for prefix in /usr /usr/local; do
  DESTDIR=$tmp/image cmake --install "${DLOCK%/src/dlock}" --prefix "$prefix" >install.log || fail "$(<install.log)"
done
for at in /usr/share/fish/vendor_completions.d /etc/fish/completions; do
  [[ -e $tmp/image$at/dlock.fish ]] || fail "nothing is installed in $at"
done
