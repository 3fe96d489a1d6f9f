#!/usr/bin/env bash
# ctest: cost 10
# What keeps redis+sentinel:// from its master ends in the right status, and in one line that names the sentinel
# or the server.  The sentinels do not get the password of the master.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"

cd "$tmp"
product=redis
. "$TEST_SOURCE/tests/cli/refusals.sh"

start_redis one
start_replica two one

# A replica is not believed to be the master, if a sentinel says so.  That one is alone: through the replica, it would
# hear of another.
start_sentinels two wrong
refuses 69 'is a replica' "redis+sentinel://$sentinels/mymaster?wait_replicas=0"
stop_redis wrong

start_sentinels one s1
url="redis+sentinel://$sentinels/mymaster?wait_replicas=0"
works "$url"

# No sentinel, one that is none, one that hangs; but one that knows the master is enough.
gone=
reserve_port gone
refuses 69 "redis mymaster: sentinel 127.0.0.1:$gone: connection refused" "redis+sentinel://127.0.0.1:$gone/mymaster?wait_replicas=0"
refuses 64 "sentinel 127.0.0.1:${redis_port[two]}: it is no sentinel" "redis+sentinel://127.0.0.1:${redis_port[two]}/mymaster?wait_replicas=0"
works "redis+sentinel://127.0.0.1:$gone,$sentinels,127.0.0.1:${redis_port[two]}/mymaster?wait_replicas=0"
pause_redis s1
refuses 69 "sentinel $sentinels: no answer within" "$url" --connect-timeout 1s
resume_redis s1

refuses 64 'it knows no master "other"' "redis+sentinel://$sentinels/other?wait_replicas=0"

# Passwords: each has its own.
rcli s1 acl setuser asker on '>asks' '&*' +@all >/dev/null
rcli s1 acl setuser default off >/dev/null
refuses 77 'needs a password; put it in a file and name that with ?sentinel_password_file= in the URL' "$url"
umask 077
echo asks >asks
echo wrong >wrong
url+="&sentinel_user=asker"
refuses 77 'wrong password' "$url&sentinel_password_file=$tmp/wrong"
works "$url&sentinel_password_file=$tmp/asks"
rcli one config set requirepass secret >/dev/null
refuses 77 "redis mymaster at 127.0.0.1:${redis_port[one]}: needs a password" "$url&sentinel_password_file=$tmp/asks"
works "${url/:\/\//://:secret@}&sentinel_password_file=$tmp/asks"
echo secret >secret
works "$url&sentinel_password_file=$tmp/asks" --password-file secret
DLOCK_PASSWORD_FILE=$tmp/secret works "$url&sentinel_password_file=$tmp/asks"
