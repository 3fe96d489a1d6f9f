#!/usr/bin/env bash
# In bash, TAB offers commands, options, choices, backends and profiles, and completes the user's own
# command behind "--".
. "$(dirname "$0")/lib.sh"

cd "$tmp"
set +E  # compgen fails where it has nothing to offer, which is no news

# shellcheck source=/dev/null
source "$DLOCK_SOURCE/completions/dlock.bash"

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
expect '' run --key ''
expect '--json' backends --j
expect 'sh fish' acquire --export = ''
expect 'fish' acquire --export = 'fi'
expect '--while' acquire --export --wh
expect '--token --token-file' release --tok
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
