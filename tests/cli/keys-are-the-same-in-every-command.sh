#!/usr/bin/env bash
# ctest: every kind of backend
# ctest: cost 20
# Whatever a key looks like, run, list, show and force-release mean the same lock by it; as JSON it is what
# it is, and as text it cannot do anything to a terminal.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/backends.sh"
need python3

# shellcheck disable=SC1003,SC2016  # as they stand here
keys=(job Job 'job ' ' job' 'two  words' "it's" '"quoted"' '\' 'a\nb' '*' '?' 'jo[b]' 'j*' % %2F %6a%6f%62 /
  a/b ../../etc . .. '{job}' '{a}b' 'a{b}c' 'a}b' job:owner '{dlock:job}:owner' '{job}:fence' -x -- --yes '$HOME' '#' $'\u00e9' $'e\u0301' $'\U1F512'
  $'evil\u202egnp.exe' $'zero\u200bwidth\u2066\ufeff\u00ad\u2028\U000e0041' "$(printf 'k%.0s' {1..255})"
  "$(printf 'k%.0s' {1..254})" "$(printf '%%%.0s' {1..255})" "$(printf '\u20ac%.0s' {1..85})")
sed -i 's/-rt 0.02/-rt 0.3/' job  # there are many of them
for i in "${!keys[@]}"; do start "$i" "--key=${keys[i]}"; done
for i in "${!keys[@]}"; do wait_until 60 test -e "$i.held"; done

# listed FIRST STEP: the list has each STEPth of the keys, from the FIRST on, and no other.
listed() {
  "$DLOCK" list --json -o key >list.json 2>>said
  for ((i = $1; i < ${#keys[@]}; i += $2)); do printf '%s\0' "${keys[i]}"; done |
    python3 -c '
import json, sys
want = sys.stdin.buffer.read().decode().split("\0")[:-1]
got = [lock["key"] for lock in json.load(open("list.json"))["locks"]]
if got != sorted(want, key=str.encode):
    sys.exit(f"listed are {got}, but held are {want}")' || fail "the list is not what is held"
}
listed 0 1
"$DLOCK" list >said 2>&1
for i in "${!keys[@]}"; do
  key=${keys[i]}
  expect_status 0 "$DLOCK" show -- "$key" >shown 2>&1
  cat shown >>said
  [[ $(<shown) == *"  Holder "*", pid ${pid[$i]},"*"  Id        $(head -c 12 "$i.token")"* ]] || fail "show $(printf '%q' "$key"): $(<shown)"
  expect_status 0 "$DLOCK" list -- "$key" >>said 2>&1
done

# Each second one is broken, and nothing happens to the others.
for ((i = 0; i < ${#keys[@]}; i += 2)); do
  expect_status 0 "$DLOCK" force-release --yes -- "${keys[i]}" >>said 2>&1
done
for ((i = 0; i < ${#keys[@]}; i += 2)); do
  ends 79 "$i"
  {
    cat "$i.err"
    expect_status 1 "$DLOCK" show -- "${keys[i]}"
    expect_status 1 "$DLOCK" force-release --yes -- "${keys[i]}"
  } >>said 2>&1
done
listed 1 2
others=()
for ((i = 1; i < ${#keys[@]}; i += 2)); do others+=("$i"); done
finish "${others[@]}"

python3 - said <<'PY' || fail "what dlock says of keys could confuse a terminal"
import sys, unicodedata
said = open(sys.argv[1], newline='', encoding='utf-8').read()
bad = {c for c in said if c != '\n' and unicodedata.category(c) in ('Cc', 'Cf', 'Zl', 'Zp')}
assert not bad, bad
for name in ('evil\\u202egnp.exe', 'zero\\u200bwidth\\u2066'):
    assert said.count(name) >= 3, f'{name} is not in {said}'
PY
