#!/usr/bin/env bash
# A user with the rights that dlock-redis(7) names can do everything, also after the server was started again.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/backends.sh"
. "$TEST_SOURCE/tests/cli/recipe.sh"

start_redis a
executable bin/redis-cli <<SH
#!/bin/sh
exec $(command -v redis-cli) -p ${redis_port[a]} "\$@"
SH
recipe redis-rights | sed 's/PASSWORD/secret/; s/ *#.*//' >rights
assert_equal OK "$(sh -e rights | sort -u)"
restart_redis a
(umask 077 && echo secret >password)
export DLOCK_BACKEND=${redis_url[a]/:\/\//:\/\/locks@} DLOCK_PASSWORD_FILE=$tmp/password

for mode in '' --shared '--slots=2'; do
  # shellcheck disable=SC2086  # none or one word
  hold $mode
  dlock list >out
  assert_contains "$(<out)" job
  dlock show job >/dev/null
  dlock run -k job ${mode:+"$mode"} -w 0.1 -E 0 -q -- true
  dlock force-release --yes job 2>err || fail "$(<err)"
  expect_status 79 wait "$holder"
done
dlock once -k import --every 1d -- true 2>err || fail "$(<err)"
assert_contains "$(dlock list --done)" import
dlock once -k import --reset
dlock id --name n --count 2 >/dev/null
dlock id --snowflake >/dev/null
lock=$(dlock acquire --export -k lease --ttl 1m)
eval "$lock"
dlock renew -k lease
dlock release -k lease

# Without users.
rcli a ACL SETUSER default '>open-sesame' >/dev/null
(umask 077 && echo open-sesame >password)
DLOCK_BACKEND=${redis_url[a]} dlock run -k job -- true 2>err || fail "$(<err)"
