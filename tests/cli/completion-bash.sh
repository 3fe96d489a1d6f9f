#!/usr/bin/env bash
# In bash, TAB offers commands, options, choices, backends and profiles, and completes the user's own
# command behind "--".
. "$(dirname "$0")/lib.sh"

cd "$tmp"
set +E  # compgen fails where it has nothing to offer, which is no news

# shellcheck source=/dev/null
source "$TEST_SOURCE/completions/dlock.bash"

# The words typed so far, the last of them being completed; prints what is offered, space-separated.
offers() {
  COMP_WORDS=("$DLOCK" "$@")
  COMP_CWORD=$#
  COMP_LINE="${COMP_WORDS[*]}"
  COMP_POINT=${#COMP_LINE}
  COMPREPLY=()
  _dlock "$DLOCK" "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
  echo "${COMPREPLY[*]}"
}

expect() { # what is offered, then the words
  local want=$1 got
  shift
  got=$(offers "$@")
  [[ $got == "$want" ]] || fail "\"dlock $*<TAB>\" offers \"$got\", not \"$want\""
}

export DLOCK_CONFIG=$tmp/config.json
echo '{"backends": {"prod": {"url": "redis://h"}}}' >"$DLOCK_CONFIG"
chmod 600 "$DLOCK_CONFIG"

expect 'run' ru
expect '--on-lost' run --on-l
expect 'term kill ignore' run --on-lost ''
expect 'kill' run --on-lost ki
expect 'kill' run --on-lost = ki
expect 'ignore wait kill' run --leftovers ''
expect 'file' run -b 'fi'
expect 'prod' run --backend pro
expect 'prod' run --backend = pro
expect 'prod' run --backend '"pro'
expect 'prod' run --backend "'pro"
expect '' run --key ''
expect '--json' backends --j
expect 'sh fish' acquire --export = ''
expect 'fish' acquire --export = 'fi'
expect '--while' acquire --export --wh
expect '--token-file' release --tok
expect 'version' help ver
touch some-file
expect 'some-file' run --status-file some

got=$(offers run -k job -- unshar)
[[ " $got " == *' unshare '* ]] || fail "behind \"--\" no commands are offered, only \"$got\""
expect 'some-file' run -k job -- cat some
got=$(offers run -k job -- --on-l)
[[ $got != *--on-lost* ]] || fail "behind \"--\" dlock's own options are offered"

# With the bash-completion package the inner command has its own completion.
if [[ -e /usr/share/bash-completion/bash_completion ]]; then
  set +u
  # shellcheck source=/dev/null
  source /usr/share/bash-completion/bash_completion
  _inner() { COMPREPLY=(inner-word); }
  complete -F _inner inner-command
  got=$(offers run -k job -- inner-command '')
  set -u
  [[ $got == inner-word ]] || fail "the inner command's own completion is not asked, but \"$got\""
fi

# The name of a profile is never run: not by TAB, and not by what TAB has put on the command line.
. "$TEST_SOURCE/tests/cli/profiles.sh"
offers run -b '' >/dev/null
assert_quiet "by TAB"
got=()
for reply in "${COMPREPLY[@]}"; do
  word=()
  eval "word=($reply)"
  assert_quiet "from the command line as $reply"
  assert_equal 1 "${#word[@]}" "words in $reply"
  got+=("${word[0]}")
done
for name in "${profiles[@]}"; do
  grep -qxF -- "$name" <(printf '%s\n' "${got[@]}") || fail "the profile $name is not offered"
done
# In quotes that are open, a name that needs others is not offered.
for quote in \' \"; do assert_equal '' "$(offers run -b "${quote}a")" "what is offered behind -b ${quote}a"; done

# On a terminal.
if command -v python3 >/dev/null; then
  mkdir bin
  ln -s "$DLOCK" bin/dlock
  # shellcheck disable=SC2016  # they are not to be expanded
  PATH=$PWD/bin:$PATH python3 "$TEST_SOURCE/tests/cli/terminal.py" '$?' "source $TEST_SOURCE/completions/dlock.bash" \
    bash --norc --noprofile -i -- pro two a '\`' '\$\(' v it '\*' '\{' s "'pro" '"pro' ||
    fail "what TAB puts on the command line of a terminal is no profile"
  assert_quiet "on a terminal"
fi
