#!/usr/bin/env bash
# In fish, TAB offers commands, options, choices, backends and profiles, and completes the user's own
# command behind "--".
. "$(dirname "$0")/lib.sh"

need fish

cd "$tmp"

export XDG_CONFIG_HOME=$tmp XDG_DATA_HOME=$tmp
mkdir bin dlock
ln -s "$DLOCK" bin/dlock
export PATH=$tmp/bin:$PATH
echo '{"backends": {"prod": {"url": "redis://h"}}}' >dlock/config.json
chmod 600 dlock/config.json
touch some-file

# What is offered for a command line, one word per line, without descriptions.
offers() {
  fish --no-config -c "source '$DLOCK_SOURCE/completions/dlock.fish'; complete -C '$1'" | cut -f 1
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
expect 'version' 'dlock help ver'
expect 'some-file' 'dlock run --status-file some'
expect 'some-file' 'dlock run -k job -- cat some'
offers 'dlock run -k job -- unshar' | grep -qx unshare ||
  fail 'behind "--" no commands are offered'
! offers 'dlock run -k job -- ls --on' | grep -q on-lost ||
  fail "behind \"--\" dlock's own options are offered"
