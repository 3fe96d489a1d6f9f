# shellcheck shell=bash disable=SC2034  # the variables are for the scripts
# For the scripts about completion in a shell.  After lib.sh:
#   . "$TEST_SOURCE/tests/cli/completions.sh"
# installs dlock in ~/.local, and goes to a directory with the file "some file".
#
#   $names        names that a shell could run or take apart; each is that of a profile, and of a lock that is held
#   $typed, $inner  command lines, and the words that TAB makes of them
#   expect_typed SHELL...  types those of $typed, and others, into this interactive shell
: "${tmp:?lib.sh comes first}"
need python3
mkdir "$tmp/here"
cd "$tmp/here" || exit
cmake --install "${DLOCK%/src/dlock}" --prefix "$HOME/.local" >"$tmp/install.log" || fail "$(<"$tmp/install.log")"

# shellcheck disable=SC2016,SC1003  # they are not to be expanded
names=('prod' '$(touch ran)' '`touch ran`' 'a;touch ran' 'b|touch ran' 'c&touch ran' 'd>ran' 'two words' "it's" "'" '"' 'e"f'
  '*' '?' '[a-z]*' '{g,h}' 'i\j' '\' 'k:l' ':m' '~' '#n' '!o' '=p' '-q' '$HOME' '${r:=ran}' 'tail ' ' head' 'ü' '%s%n' "s'\$(touch ran)'"
  't"$(touch ran)"' 'u\' "v\\';touch ran;'" '(w)' '^x' 'y=z:1')
export DLOCK_CONFIG=$tmp/profiles.json
python3 - "$DLOCK_BACKEND" "${names[@]}" >"$DLOCK_CONFIG" <<'PY'
import json, sys
print(json.dumps({'backends': {name: {'url': sys.argv[1]} for name in sys.argv[2:]}}))
PY
chmod 600 "$DLOCK_CONFIG"
keys=()
for name in "${names[@]}"; do keys+=(-k "$name"); done
"$DLOCK" run -q "${keys[@]}" -- sh -c 'touch ../held; exec sleep 1000' &
wait_until 30 test -e ../held

# The dlock that is found: it answers a shell, and otherwise writes only which words the shell gave it.
mkdir "$tmp/bin"
cat >"$tmp/bin/dlock" <<'SH'
#!/bin/bash
[[ $1 != complete ]] || exec "$HOME/.local/bin/dlock" "$@"
printf '<%s>' "$@" >words
echo WORDS-WRITTEN
SH
chmod +x "$tmp/bin/dlock"
export PATH=$tmp/bin:$PATH
touch 'some file'

# Command lines, and what TAB makes of them.
typed=(
  'dlock ru^I' '<run>'
  'dlock help ver^I' '<help><version>'
  'dlock run --on-l^I' '<run><--on-lost>'
  'dlock run --on-lost k^I' '<run><--on-lost><kill>'
  'dlock run --leftovers=k^I' '<run><--leftovers=kill>'
  'dlock acquire --export=f^I' '<acquire><--export=fish>'
  'dlock run -b fi^I' '<run><-b><file>'
  'dlock run -bfi^I' '<run><-bfile>'
  'dlock run --backend=pro^I' '<run><--backend=prod>'
  "dlock run -b 'pro^I" '<run><-b><prod>'
  'dlock list -o key,ho^I' '<list><-o><key,host>'
  'dlock release --tok^I' '<release><--token-file>'
  'dlock run --status-file some^I' '<run><--status-file><some file>'
  'dlock run --status-file=some^I' '<run><--status-file=some file>'
  'dlock run -b pro^I--on-l^Ikil^I-- cat' '<run><-b><prod><--on-lost><kill><--><cat>'
  'dlock run -k job -- cat ";" some^I' '<run><-k><job><--><cat><;><some file>'
  'dlock run -k job -- cat some^I' '<run><-k><job><--><cat><some file>'
  'dlock run -b k:l -- cat some^I' '<run><-b><k:l><--><cat><some file>'
  'dlock run -k jo^I -- cat' '<run><-k><jo><--><cat>'
  'dlock run --config "" -b two\ words -k pro^I' '<run><--config><><-b><two words><-k><pro>'
  'dlock run -b two\ words -k pro^I' '<run><-b><two words><-k><prod>'
  'dlock show pro^I' '<show><prod>'
  'dlock show -- -^I' '<show><--><-q>'
  'dlock release --key=pro^I' '<release><--key=prod>'
  'dlock release -k -^I' '<release><-k><-q>'
  'dlock show y=^I' '<show><y=z:1>'
  'dlock show y=z:^I' '<show><y=z:1>'
  'dlock force-release --backend=k:^I k:^I' '<force-release><--backend=k:l><k:l>'
)
# And where a shell completes commands inside of others.
inner=(
  'dlock run -k job -- unshar^I' '<run><-k><job><--><unshare>'
  'dlock run -k job -- dlock show pro^I' '<run><-k><job><--><dlock><show><prod>'
  'dlock run -b k:l -- dlock show y=z:^I' '<run><-b><k:l><--><dlock><show><y=z:1>'
)
# Beginnings of one name each, as they must be typed.
# shellcheck disable=SC2016  # they are not to be expanded
beginnings=(two a '\`' '\$\(' '\$\{' v it '\*' '\{' s b c d e u '\[' '\(' k:)

expect_typed() { # SHELL...
  local lines=() got i beginning name
  for ((i = 0; i < ${#typed[@]}; i += 2)); do lines+=("${typed[i]}"); done
  for beginning in "${beginnings[@]}"; do
    lines+=("dlock run -b $beginning^I" "dlock show $beginning^I")
  done
  # A list is shown, and the line is typed further.
  lines+=('dlock run -b ^I^Ifile' 'dlock show ^I^Iprod')
  python3 "$TEST_SOURCE/tests/cli/terminal.py" "$@" -- "${lines[@]}" >"$tmp/got" || fail "$1 stopped"
  [[ ! -e ran ]] || fail "a name was run in $1"
  mapfile -t got <"$tmp/got"
  for ((i = 0; i < ${#lines[@]} - 2; ++i)); do
    if ((2 * i < ${#typed[@]})); then
      assert_equal "${typed[2 * i + 1]}" "${got[i]}" "what $1 makes of ${lines[i]}"
    else
      name=${got[i]#'<run><-b><'}
      name=${name#'<show><'}
      grep -qxF -- "$name" <(printf '%s>\n' "${names[@]}") || fail "$1 makes of ${lines[i]}: ${got[i]}"
    fi
  done
}
