# shellcheck shell=bash disable=SC2034  # the variables are for the scripts
# For the scripts about completion: names of profiles that a shell could run or take apart.  After lib.sh:
#   . "$TEST_SOURCE/tests/cli/profiles.sh"
#   $profiles     the names; each is a profile of $DLOCK_CONFIG, for the locks of the test
#   assert_quiet  fails if one of them was run: each would create ./ran
: "${tmp:?lib.sh comes first}"
# shellcheck disable=SC2016,SC1003  # they are not to be expanded
profiles=('prod' '$(touch ran)' '`touch ran`' 'a;touch ran' 'b|touch ran' 'c&touch ran' 'd>ran' 'two words' "it's" "'" '"' 'e"f'
  '*' '?' '[a-z]*' '{g,h}' 'i\j' '\' 'k:l' ':m' '~' '#n' '!o' '=p' '-q' '$HOME' '${r:=ran}' 'tail ' ' head' 'ü' '%s%n' "s'\$(touch ran)'"
  't"$(touch ran)"' 'u\' "v\\';touch ran;'" '(w)' '^x')
export DLOCK_CONFIG=$tmp/profiles.json
(umask 077
  {
    echo '{"backends": {'
    comma=
    for name in "${profiles[@]}"; do
      name=${name//\\/\\\\}
      echo "$comma\"${name//\"/\\\"}\": {\"url\": \"$DLOCK_BACKEND\"}"
      comma=,
    done
    echo '}}'
  } >"$DLOCK_CONFIG")
for name in "${profiles[@]}"; do
  expect_status 0 "$DLOCK" run -q -b "$name" -k job -- true
done
unset comma name

assert_quiet() { # WHEN
  [[ ! -e ran ]] || fail "the name of a profile was run $1"
}
