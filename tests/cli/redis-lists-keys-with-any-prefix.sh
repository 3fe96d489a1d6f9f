#!/usr/bin/env bash
# Whatever --prefix is, "dlock list" finds the locks below it, and no others: it may have characters that
# redis' patterns know, be a hash tag, as on a cluster, or nothing.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
start_redis a
export DLOCK_BACKEND=${redis_url[a]}
# shellcheck disable=SC1003  # as they stand here
keys=(job 'jo*[b]?\' fence owner owner:job queue revoked to to:x waiter)
# next.sh KEY...: holds the lock KEY and all that follow, and then lists them.
cat >next.sh <<'SH'
#!/bin/sh
test $# -gt 0 || exec "$DLOCK" list -o key
key=$1
shift
exec "$DLOCK" run -q -n -k "$key" -- ./next.sh "$@"
SH
chmod +x next.sh
# shellcheck disable=SC1003
for prefix in dlock: 'a*[^b]?\' $'\u00e9-' '{app}:' '{app}' 'x{' '}'; do
  rcli a flushall >/dev/null
  rcli a set "x$prefix" other >/dev/null
  rcli a set otherwise other >/dev/null
  export DLOCK_PREFIX=$prefix
  ./next.sh "${keys[@]}" >out || fail "status $? with the prefix $prefix"
  assert_equal "$(printf '%s\n' KEY "${keys[@]}" | LC_ALL=C sort)" "$(LC_ALL=C sort out)" \
    "the list with the prefix $prefix"
done

# Without one only what is known to be a lock is listed.
rcli a flushall >/dev/null
rcli a set otherwise other >/dev/null
DLOCK_PREFIX='' "$DLOCK" run -q -n -k job -- "$DLOCK" list -o key >out
assert_equal $'KEY\njob' "$(<out)" "the list without a prefix"
