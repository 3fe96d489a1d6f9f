#!/usr/bin/env bash
# ctest: cost 30
# rediss://: the lock is taken, waited for and renewed by TLS, and only from a server that shows a
# certificate for the name in the URL, in force, of a CA that is trusted.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/redis.sh"
. "$(dirname "$0")/certificates.sh"

need python3
cd "$tmp"
unset DLOCK_BACKEND SSL_CERT_FILE SSL_CERT_DIR
[[ $("$DLOCK" run --backend rediss://localhost:1 --key k -- true 2>&1) != *"without TLS"* ]] ||
  skip "this dlock was built without TLS"
[[ $(redis-server - 2>&1 <<<'tls-port none') != *"Bad directive"* ]] ||
  skip "this redis-server was built without TLS"

names=subjectAltName=DNS:localhost,IP:127.0.0.1
certificate ca ca 2 basicConstraints=critical,CA:TRUE
certificate old-ca old-ca -1 basicConstraints=critical,CA:TRUE
certificate good ca 2 "$names"
certificate expired ca -1 "$names"
certificate of-old-ca old-ca 2 "$names"
certificate other ca 2 subjectAltName=DNS:other.example,IP:127.0.0.2
certificate client ca 2 subjectAltName=DNS:client
certificate self self 2 "$names"

port=
reserve_port port
start_redis s tls-port "$port" tls-cert-file "$tmp/good.pem" tls-key-file "$tmp/good.key" \
  tls-ca-cert-file "$tmp/ca.pem" tls-auth-clients no
# shows NAME: what the server shows of itself from now on.
shows() {
  assert_equal OK "$(rcli s config set tls-cert-file "$tmp/$1.pem" tls-key-file "$tmp/$1.key")"
}
# refused STATUS TEXT URL: dlock run ends with this status and says this, in one line, and the job
# does not run.
refused() {
  local want=$1 text=$2
  rm -f ran
  try "$want" --backend "$3" --connect-timeout 1s --key k -- touch ran
  assert_contains "$(<err)" "$text" "$3"
  assert_equal 1 "$(wc -l <err)" "lines about $3"
  [[ ! -e ran ]] || fail "the job ran: $3"
}

url=rediss://localhost:$port
trusted="?cacert=$tmp/ca.pem"
at="dlock: redis localhost:$port: "

# Whom this machine does not trust it does not talk to, whatever way it is told whom to trust.
refused 69 "${at}its certificate is not trusted: " "$url"
assert_contains "$(<err)" " (name its CA with ?cacert=FILE)"
try 0 --backend "$url$trusted" --key k -- true
assert_equal '' "$(<err)"
SSL_CERT_FILE=$tmp/ca.pem try 0 --backend "$url" --key k -- true
# The address will do as well as the name, and the URL may stand in a profile.
try 0 --backend "rediss://127.0.0.1:$port/0$trusted" --key k -- true
cat >config.json <<END
{"backend": "jobs", "backends": {"jobs": {"url": "$url/3$trusted"}}}
END
DLOCK_CONFIG=$tmp/config.json try 0 --key k --status-file status -- \
  sh -c 'redis-cli -s "$1" -n 3 --raw type dlock:k >kind' sh "${redis_dir[s]}/socket"
assert_equal string "$(<kind)"
assert_contains "$(<status)" "rediss://localhost:$port/3\"" "the location"
SSL_CERT_FILE=$tmp/ca.pem try 0 --backend rediss --server "localhost:$port" --key k -- true

# Users and passwords.
rcli s acl setuser tester on '>secret' '~*' '&*' +@all >/dev/null
DLOCK_BACKEND=rediss://tester:secret@localhost:$port$trusted try 0 --key k -- true
DLOCK_BACKEND=rediss://tester:wrong@localhost:$port$trusted try 77 --key k -- true

# A waiter is called when the lock is released, and renewals keep the lock, all on the connections
# that were made at first: those for requests and those to be called on.
"$DLOCK" run --backend "$url$trusted" --key job --ttl 4s -- \
  sh -c 'touch held; until test -e go; do sleep 0.02; done' &
holder=$!
wait_until 20 test -e held
"$DLOCK" run -q --backend "$url$trusted" --key job -- touch second &
waiter=$!
connections() { rcli s client list | sed -n "s/^id=\([0-9]*\) .* laddr=[^ ]*:$port .*/\1/p"; }
has_connections() { (($(connections | wc -l) == $1)); }
wait_until 20 has_connections 4
first=$(connections)
scripts() { rcli s info commandstats | sed -n 's/^cmdstat_evalsha:calls=\([0-9]*\),.*/\1/p'; }
before=$(scripts)
renewed_thrice() { (($(scripts) >= before + 3)); }
wait_until 20 renewed_thrice
[[ ! -e second ]] || fail "OVERLAP: both have the lock"
assert_equal "$first" "$(connections)" "connections"
touch go
wait "$holder"
wait_until 5 test -e second
wait "$waiter"

# The server's certificate.
shows expired
refused 69 "${at}its certificate has expired" "$url$trusted"
shows other
refused 69 "${at}its certificate is for another name" "$url$trusted"
refused 69 "its certificate is not for this address" "rediss://127.0.0.1:$port$trusted"
shows self
refused 69 "${at}its certificate is not trusted: self" "$url"
refused 69 "(its CA is not in $tmp/ca.pem)" "$url$trusted"
try 0 --backend "$url?cacert=$tmp/self.pem" --key k -- true
shows of-old-ca
refused 69 "${at}the certificate of its CA has expired" "$url?cacert=$tmp/old-ca.pem"
shows good

# Nothing older than TLS 1.2; with that it works as with TLS 1.3.
rcli s config set tls-protocols TLSv1.2 >/dev/null
try 0 --backend "$url$trusted" --key k -- true
rcli s config set tls-protocols TLSv1.1 >/dev/null
refused 69 "${at}the server speaks no TLS but versions that are too old" "$url$trusted"
rcli s config set tls-protocols '' >/dev/null

# Who wants to know us.
own="&cert=$tmp/client.pem&key=$tmp/client.key"
rcli s config set tls-auth-clients yes >/dev/null
refused 77 "${at}the server wants a certificate of ours (?cert=FILE&key=FILE)" "$url$trusted"
try 0 --backend "$url$trusted$own" --key k -- true
assert_lacks "$("$DLOCK" doctor --backend "$url$trusted$own")" 'no password is needed' "what doctor says"
(umask 077 && cat client.pem client.key >both.pem)
try 0 --backend "$url$trusted&cert=$tmp/both.pem" --key k -- true
# Nobody else may read the key or own its file.
for pair in "client.key $own" "both.pem &cert=$tmp/both.pem"; do
  file=$tmp/${pair% *}
  chmod 0640 "$file"
  refused 77 "the key $file: holds a private key, and others can read it (mode 0640); run: chmod go-rwx $file" \
    "$url$trusted${pair#* }"
  chmod 0600 "$file"
  if ((EUID == 0)); then
    chown 65534 "$file"
    refused 77 "the key $file: belongs to user 65534" "$url$trusted${pair#* }"
    chown 0 "$file"
  fi
done
chmod 0644 client.pem # is for everybody
try 0 --backend "$url$trusted$own" --key k -- true
refused 77 "${at}the server does not accept our certificate: " \
  "$url$trusted&cert=$tmp/self.pem&key=$tmp/self.key"
rcli s config set tls-protocols TLSv1.2 >/dev/null
refused 69 "(perhaps it wants a certificate: ?cert=FILE&key=FILE)" "$url$trusted"
rcli s config set tls-protocols '' tls-auth-clients no >/dev/null

# One speaks TLS and the other does not.  A Redis says nothing to what is no line.
plain=${redis_port[s]}
refused 69 "localhost:$plain: no answer within " "rediss://localhost:$plain$trusted"
assert_contains "$(<err)" "does it speak TLS there?"
"$DLOCK" run --backend "rediss://localhost:$plain" --connect-timeout 60s --key k -- true 2>err &
handshaking() { rcli s client list | grep -q ' qbuf=[1-9][0-9][0-9] '; }
wait_until 20 handshaking
begun=$EPOCHSECONDS
kill -TERM $!
expect_status 143 wait $!
((EPOCHSECONDS - begun < 20)) || fail "a signal did not end the handshake"
refused 69 "if it speaks TLS there, write rediss://" "redis://localhost:$port"
python3 -c '
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    peer = listener.accept()[0]
    data = peer.recv(4096)
    peer.sendall(b"-ERR what is that?\r\n" if data[:1] == b"\x16" else b"\x15\x03\x01\x00\x02\x02\x46")
' >answers.port &
wait_until 20 test -s answers.port
answers=$(<answers.port)
refused 69 "it does not speak TLS there" "rediss://localhost:$answers$trusted"
refused 69 "it speaks TLS there; write rediss://" "redis://localhost:$answers"

# What is wrong with the URL is said before anybody is asked.
nowhere=rediss://localhost:1
refused 64 "cacert in the URL must be an absolute path" "$nowhere?cacert=ca.pem"
refused 64 'rediss:// has cacert, cert or key' "$nowhere?verify=no"
refused 64 "a key in the URL without its cert" "$nowhere?key=/k"
refused 64 'redis:// has none' "redis://localhost:1?cacert=/c"
refused 64 'unknown scheme "rediss+unix"' "rediss+unix:///tmp/s"
# And what is wrong with the files when they are read.
for file in cacert cert; do
  refused 64 "cannot read the" "$url?$file=$tmp/none"
  refused 64 "certificate in $tmp/config.json (must be PEM)" "$url?$file=$tmp/config.json"
done
refused 64 "the key in $tmp/ca.key cannot be used with $tmp/client.pem" \
  "$url?cert=$tmp/client.pem&key=$tmp/ca.key"
refused 64 "the key $tmp/none: No such file" "$url?cert=$tmp/client.pem&key=$tmp/none"
# A passphrase is asked from nobody.
openssl rsa -aes128 -passout pass:secret -in client.key -out locked.key 2>/dev/null
refused 64 "without a passphrase" "$url?cert=$tmp/client.pem&key=$tmp/locked.key"

# OpenSSL is loaded when it is needed, and only then.
mkdir broken
: >broken/libssl.so.3
: >broken/libssl.so.1.1
LD_LIBRARY_PATH=$tmp/broken refused 69 "${at}TLS needs libssl.so." "$url$trusted"
LD_LIBRARY_PATH=$tmp/broken try 0 --backend "${redis_url[s]}" --key k -- true
