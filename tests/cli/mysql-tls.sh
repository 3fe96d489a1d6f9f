#!/usr/bin/env bash
# mysql by TLS: where the server has it, without being asked for; never without it once it was asked for; with
# a certificate of ours where the user needs one.  Whom the URL does not trust gets no connection.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/certificates.sh"

need python3 strace
cd "$tmp"
product=mysql
secret=sesame
. "$TEST_SOURCE/tests/cli/refusals.sh"
export DLOCK_PASSWORD_FILE=$mysql_password_file

certificate ca ca 2 basicConstraints=critical,CA:TRUE
certificate server ca 2 subjectAltName=DNS:localhost,IP:127.0.0.1
certificate other ca 2 subjectAltName=DNS:other.example
certificate job ca 2 subjectAltName=DNS:job

start_mysql s ssl_ca="$tmp/ca.pem" ssl_cert="$tmp/server.pem" ssl_key="$tmp/server.key"
start_mysql o ssl_ca="$tmp/ca.pem" ssl_cert="$tmp/other.pem" ssl_key="$tmp/other.key"
start_mysql plain skip_ssl
sql s "CREATE USER tls@'%' IDENTIFIED BY '$secret' REQUIRE SSL; GRANT ALL ON test.* TO tls@'%';
       CREATE USER cert@'%' IDENTIFIED BY '$secret' REQUIRE X509; GRANT ALL ON test.* TO cert@'%'"
sql s "INSTALL SONAME 'auth_ed25519'; CREATE USER ed@'%' IDENTIFIED VIA ed25519 USING PASSWORD('$secret') REQUIRE SSL;
       GRANT ALL ON test.* TO ed@'%'"
s=127.0.0.1:${mysql_port[s]}/test
o=localhost:${mysql_port[o]}/test
plain=127.0.0.1:${mysql_port[plain]}/test

# Preferred.
for method in table row version; do works "mysql-$method://tls@$s"; done
works "mysql://tls@$s?tls=preferred"
works "mysql://tls@$s?tls=on"
works "mysql://app@$plain"
refuses 77 'or the user may not connect from this host, or only over TLS; say ?tls=on' "mysql://tls@$s?tls=off"

# Asked for.
refuses 69 'it does not speak TLS there' "mysql://app@$plain?tls=on"
refuses 69 'it does not speak TLS there' "mysql://app@$plain?tls=verify&ca=$tmp/ca.pem"
for user in tls ed; do
  works "mysql://$user@$s?tls=on"
  works "mysql://$user@$s?tls=verify&ca=$tmp/ca.pem"
done
works "mysql://app@$o?tls=on"
refuses 69 'is for another name; is its CA in ' "mysql://app@$o?tls=verify&ca=$tmp/ca.pem"
refuses 69 'is not trusted or is for another name; is its CA in ' "mysql://tls@$s?tls=verify&ca=$tmp/job.pem"

# Where no certificate is verified, the list of those that the system trusts is not read.
strace -f -qq -o trace -e trace=openat "$DLOCK" run -b "mysql://tls@$s?tls=on" -k job -- true
! grep -F /etc/ssl/certs trace || fail "reads the list of the system's CAs"

# Ours.
ours="cert=$tmp/job.pem&key=$tmp/job.key"
refuses 77 'wrong password for user' "mysql://cert@$s"
works "mysql://cert@$s?tls=on&$ours"
works "mysql://cert@$s?tls=verify&ca=$tmp/ca.pem&$ours"
chmod 0604 job.key
refuses 77 "the key $tmp/job.key: holds a private key, and others can read it (mode 0604); run: chmod go-rwx" \
  "mysql://cert@$s?tls=on&$ours"
chmod 0600 job.key
refuses 64 "the key $tmp/none: No such file" "mysql://cert@$s?tls=on&cert=$tmp/job.pem&key=$tmp/none"
refuses 64 'belong together' "mysql://cert@$s?tls=on&cert=$tmp/job.pem"
refuses 64 'for TLS only' "mysql://cert@$s?$ours"

# Where TLS was asked for and the server has none, nothing is sent: no name of a user, no hash of a password.
# Each line is how a server greets: the method of login, and the capabilities, of which CLIENT_SSL (0x800) is none.
cat >greeters.py <<'PY'
import socket, struct, threading

full = 0x8008f7ff  # with CLIENT_PLUGIN_AUTH (0x80000)
kinds = {
    'native': (b'5.7.40', full, b'mysql_native_password'),
    'mariadb': (b'5.5.5-10.11.6-MariaDB', full & ~1, b'mysql_native_password'),
    'sha2': (b'8.4.0', full, b'caching_sha2_password'),
    'sha256': (b'8.4.0', full, b'sha256_password'),
    'ed25519': (b'5.5.5-10.11.6-MariaDB', full, b'client_ed25519'),
    'absent': (b'5.5.5-12.0.2-MariaDB', full, b'parsec'),
    'unknown': (b'8.4.0', full, b'of_the_impostor'),
    'clear': (b'8.4.0', full, b'mysql_clear_password'),
    'old': (b'5.1.73', 0xf7ff, None),     # no CLIENT_PLUGIN_AUTH
    'older': (b'4.0.30', 0x002c, None),   # no CLIENT_PROTOCOL_41
    'strange': (b'5.7.40', full, b'client_ed25519', b'\xfe'),  # begins as a request for another method does
}

def serve(name, version, caps, method, protocol=b'\x0a'):
    listener = socket.create_server(('127.0.0.1', 0))
    print(name, listener.getsockname()[1], flush=True)
    greeting = (protocol + version + b'\0' + struct.pack('<I', 7) + b'abcdefgh\0'
                + struct.pack('<HBHHB', caps & 0xffff, 45, 2, caps >> 16, 21) + b'\0' * 10 + b'ijklmnopqrst\0')
    if method is not None:
        greeting += method + b'\0'
    def run():
        while True:
            line = listener.accept()[0]
            line.sendall(struct.pack('<I', len(greeting))[:3] + b'\0' + greeting)
            heard = len(line.recv(4096))
            line.close()
            with open('heard.' + name, 'a') as file:
                print(heard, file=file)
    threading.Thread(target=run).start()

for name, kind in kinds.items():
    serve(name, *kind)
print('all', 0, flush=True)
PY
python3 greeters.py >greeters &
wait_until 20 grep -qs all greeters
while read -r name number <&3; do
  [[ $name != all ]] || break
  case $name in
    older) says='it asks for a login that is not safe' status=77 ;;
    *) says="127.0.0.1:$number: it does not speak TLS there" status=69 ;;
  esac
  for tls in on "verify&ca=$tmp/ca.pem"; do
    rm -f "heard.$name"
    refuses "$status" "$says" "mysql://app@127.0.0.1:$number/test?tls=$tls"
    wait_until 20 test -s "heard.$name"
    assert_equal 0 "$(sort -u "heard.$name")" "bytes that $name heard with tls=${tls%%&*}"
  done
done 3<greeters

# As a MySQL 8 that was just restarted: it greets with caching_sha2_password, and does not know the hash.
# With tls=on dlock begins with another method, and the server asks for this one by TLS.
cat >login.py <<'PY'
import socket, ssl, struct, sys

def send(line, number, payload):
    line.sendall(struct.pack('<I', len(payload))[:3] + bytes([number]) + payload)

def receive(line):
    head = read(line, 4)
    return read(line, head[0] | head[1] << 8 | head[2] << 16)

def read(line, size):
    out = b''
    while len(out) < size:
        out += line.recv(size - len(out)) or sys.exit('the client has gone')
    return out

listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
line = listener.accept()[0]
send(line, 0, b'\x0a8.4.0\0' + struct.pack('<I', 7) + b'abcdefgh\0' + struct.pack('<HBHH', 0xafff, 45, 2, 0x8008)
     + b'\x15' + b'\0' * 10 + b'ijklmnopqrst\0' + b'caching_sha2_password\0')
receive(line)  # the request for TLS
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('server.pem', 'server.key')
line = context.wrap_socket(line, server_side=True)
login = receive(line)
number = 3
if b'\0mysql_native_password\0' in login:
    send(line, number, b'\xfecaching_sha2_password\0' + b'abcdefghijklmnopqrst\0')
    receive(line)
    number += 2
send(line, number, b'\1\4')
with open('heard', 'wb') as file:
    file.write(receive(line))
PY
for tls in preferred on; do
  rm -f login.port heard
  python3 login.py >login.port &
  wait_until 20 test -s login.port
  try 69 -n -k job -b "mysql://app@127.0.0.1:$(<login.port)/test?tls=$tls" -- true
  assert_equal "$secret" "$(tr -d '\0' <heard)" "password that the server heard with tls=$tls ($(<err))"
done
