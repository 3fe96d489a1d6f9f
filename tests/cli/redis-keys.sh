#!/usr/bin/env bash
# Any key is as good as any other on a redis server: the command is told it byte by byte, and no two are
# the same lock.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}

long=$(printf '%255s' '' | tr ' ' k)
# shellcheck disable=SC1003,SC2016  # as they stand here
keys=(job Job JOB 'job ' ' job' ' ' 'two words' "it's" '"quoted"' '\' 'a\nb' '*' '?' '[a]' 'a*' '*:owner'
  '%' '%2F' '%00' / a/b ../../etc . .. '{job}' '{a}b' 'a{b}c' 'a}b' '{}' '{}x' '{' '}{' '{{a}}' job:owner
  '{dlock:job}:owner' '{dlock:job}:fence' dlock:job '$HOME' '`id`' '; DEL *' '--' -n '#' $'\u00e9'
  $'e\u0301' $'\U1F512' $'\u202e' "$long" "${long:1}" "${long:1}j" 0 00)

# Each in its turn, from within the one before: all are held at once, so that none is another one.
# Innermost, they are listed as the commands were told.
cat >next.sh <<'SH'
#!/bin/bash
printf '%s\0' "$DLOCK_KEY" >>told
(($#)) || exit 7
key=$1
shift
# Whose token it is told must not matter: the keys differ.
exec "$DLOCK" run -q -n "--key=$key" -- ./next.sh "$@"
SH
chmod +x next.sh
got=0
"$DLOCK" run -q -n "--key=${keys[0]}" -- ./next.sh "${keys[@]:1}" || got=$?
mapfile -d '' -t told <told
((got == 7)) || fail "status $got behind the key ${told[-1]} (number ${#told[@]} of ${#keys[@]})"
for i in "${!keys[@]}"; do assert_equal "${keys[i]}" "${told[i]}" "DLOCK_KEY"; done
assert_equal "${#keys[@]}" "${#told[@]}" "the number of keys"

# Nothing but the counters stays, one for each.
assert_equal "${#keys[@]}" "$(rcli a dbsize)" "the number of redis keys when all are free ($(rcli a keys '*'))"

# Each excludes itself, whoever asks; and nothing that is not its.
for key in "${keys[@]}"; do
  rcli a set "dlock:$key" theirs >/dev/null
  expect_status 75 "$DLOCK" run -q -n "--key=$key" -- true
  rcli a del "dlock:$key" >/dev/null
done

# Another prefix or database is another lock.
rcli a set dlock:job theirs >/dev/null
expect_status 0 "$DLOCK" run -q -n -k job --prefix other: -- true
expect_status 0 "$DLOCK" run -q -n -k job -b "${redis_url[a]}/1" -- true
expect_status 75 "$DLOCK" run -q -n -k ob --prefix dlock:j -- true
expect_status 75 "$DLOCK" run -q -n -k dlock:job --prefix '' -- true
