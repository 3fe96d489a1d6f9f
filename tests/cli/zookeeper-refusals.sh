#!/usr/bin/env bash
# What a ZooKeeper server refuses, what is none and what is not there at all ends in the right status and
# in a line on stderr that names the server, soon, starts nothing and leaves nothing.  Passwords are not in it.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
need openssl

cd "$tmp"
product=zookeeper
secret=hunter2
. "$TEST_SOURCE/tests/cli/refusals.sh"

host=127.0.0.1
# Not there, or no ZooKeeper server.
impostors answering <<'END'
http b'HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'
silent b''
huge b'\x7f\xff\xff\xff' + b'x' * 1000
minus b'\xff\xff\xff\xff' * 100
zeros b'\0' * 4096
END
refuses 69 'no-such-host.invalid' zookeeper://no-such-host.invalid
refuses 69 'connection refused' zookeeper://$host:1
refuses 69 'connection refused' 'zookeeper://[::1]:1'
refuses 69 "$host:1,$host:2" zookeeper://$host:1,$host:2
for name in silent full; do refuses 69 'no answer' "zookeeper://$host:${port[$name]}"; done
for name in http huge minus zeros; do
  refuses 69 'does not speak the protocol of ZooKeeper' "zookeeper://$host:${port[$name]}"
done

start_zk a
url=${zk_url[a]}
works "$url"
zk a rmr /dlock
pause_zk a
refuses 69 'no answer' "$url"
resume_zk a
works "zookeeper://no-such-host.invalid:1,$host:1,$host:${zk_port[a]}"

# A server whose connections are all in use says nothing, and a port for TLS neither.
start_zk full maxClientCnxns=1
DLOCK_BACKEND=${zk_url[full]} hold --ttl 30s
refuses 69 maxClientCnxns "${zk_url[full]}" --nonblock
looks_refused 69 maxClientCnxns show -b "${zk_url[full]}" job
DLOCK_BACKEND=${zk_url[full]} "$DLOCK" run -k job --connect-timeout 0.5 -- touch second 2>waits &
waiter=$!
wait_until 20 grep -q 'maxClientCnxns.*trying again until it answers' waits
release
expect_status 0 wait "$waiter"
rm held go
[[ -e second ]] || fail "the waiter without a connection did not run: $(<waits)"

openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=localhost -keyout tls.key -out tls.crt 2>/dev/null
tls=
reserve_port tls
openssl s_server -accept "$host:$tls" -key tls.key -cert tls.crt -quiet 2>/dev/null &
tls_server=$!
answers_in_tls() { openssl s_client -connect "$host:$tls" </dev/null >/dev/null 2>&1; }
wait_until 20 answers_in_tls
refuses 69 'for TLS, which dlock does not have' "zookeeper://$host:$tls"
kill "$tls_server"

# A chroot that is not there is not made.
refuses 64 '/no/such' "$url/no/such"
zk a stat /no && fail "the chroot was made"
zk a create /team/a
works "$url/team/a"
zk a stat /team/a/dlock/job >found

# Rights.
umask 077
echo "joe:$secret" >joe
echo "joe:$secret-wrong" >wrong
echo "eve:$secret" >eve
echo "$secret" >nobody
umask 022
zk a rmr /dlock
works "$url?auth_file=$tmp/joe"
[[ $(zk a --auth "joe:$secret" acl /dlock/job) =~ ^digest:joe:[^,]*:cdrwa$ ]] ||
  fail "the ACL is $(zk a --auth "joe:$secret" acl /dlock/job)"
refuses 77 '?auth_file=' "$url"
refuses 77 'permission' "$url?auth_file=$tmp/wrong"
refuses 77 'permission' "$url?auth_file=$tmp/eve"
refuses 64 'USER:PASSWORD' "$url?auth_file=$tmp/nobody"
for command in 'show job' 'list' 'force-release --yes job'; do
  got=0
  # shellcheck disable=SC2086  # words of the command
  DLOCK_BACKEND=$url "$DLOCK" $command >out 2>err || got=$?
  if [[ $command == force* || $command == show* ]]; then
    assert_equal 77 "$got" "status of $command without the right ($(<err))"
  fi
done
zk a --auth "joe:$secret" set-acl /dlock/job auth::cdrwa,world:anyone:rd
refuses 77 'cannot create' "$url"
zk a --auth "joe:$secret" set-acl /dlock/job auth::cdrwa,world:anyone:cd
refuses 77 'cannot list' "$url"
assert_equal '' "$(zk a --auth "joe:$secret" ls /dlock/job)" "nodes that are left"

# The file of the password.
chmod 644 joe
refuses 78 joe "$url?auth_file=$tmp/joe"
chmod 600 joe
refuses 78 missing "$url?auth_file=$tmp/missing"

# The password is seen nowhere: arguments, environment, records, log.
(
  umask 077
  DLOCK_BACKEND="$url?auth_file=$tmp/joe" "$DLOCK" run -vv -k job -- \
    sh -c 'touch held; env >env; until test -e go; do sleep 0.02; done' 2>err &
  echo $! >pid
  wait $!
) &
wait_until 20 test -e held
node=$(zk a --auth "joe:$secret" ls /dlock/job)
zk a --auth "joe:$secret" get "/dlock/job/$node" >record
tr '\0' '\n' <"/proc/$(<pid)/cmdline" >cmdline
touch go
wait $!
grep -l -e "$secret" env err record cmdline && fail "the password can be seen"

# What it grants may not be what was asked for, which is said once.
start_zk b minSessionTimeout=1000 maxSessionTimeout=12000
try 0 -b "${zk_url[b]}" -k job -- true
assert_equal 1 "$(wc -l <err)" "lines on stderr ($(<err))"
assert_contains "$(<err)" "127.0.0.1:${zk_port[b]}: grants a TTL of 12s instead of 30s"
try 0 -b "${zk_url[b]}" -k job --ttl 3s -- true
assert_equal '' "$(<err)" "stderr when the ttl is granted"
