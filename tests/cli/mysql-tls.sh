#!/usr/bin/env bash
# mysql by TLS: where the server has it, without being asked for; never without it once it was asked for; with
# a certificate of ours where the user needs one.  Whom the URL does not trust gets no connection.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/mysql.sh"
. "$(dirname "$0")/certificates.sh"

need python3
cd "$tmp"
product=mysql
secret=sesame
. "$DLOCK_SOURCE/tests/cli/refusals.sh"
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
s=127.0.0.1:${mysql_port[s]}/test
o=localhost:${mysql_port[o]}/test
plain=127.0.0.1:${mysql_port[plain]}/test

# Preferred.
for method in table row version; do works "mysql-$method://tls@$s"; done
works "mysql://tls@$s?tls=preferred"
works "mysql://tls@$s?tls=on"
works "mysql://app@$plain"
refuses 77 'may not log in, or only over TLS; say ?tls=on' "mysql://tls@$s?tls=off"

# Asked for.
refuses 69 'speak TLS' "mysql://app@$plain?tls=on"
refuses 69 ' TLS' "mysql://app@$plain?tls=verify&ca=$tmp/ca.pem"
works "mysql://tls@$s?tls=verify&ca=$tmp/ca.pem"
works "mysql://app@$o?tls=on"
refuses 69 'is for another name; is its CA in ' "mysql://app@$o?tls=verify&ca=$tmp/ca.pem"
refuses 69 'is not trusted or is for another name; is its CA in ' "mysql://tls@$s?tls=verify&ca=$tmp/job.pem"

# Ours.
ours="cert=$tmp/job.pem&key=$tmp/job.key"
refuses 77 'may not log in' "mysql://cert@$s"
works "mysql://cert@$s?tls=on&$ours"
works "mysql://cert@$s?tls=verify&ca=$tmp/ca.pem&$ours"
chmod 0604 job.key
refuses 77 "the key $tmp/job.key: holds a private key, and others can read it (mode 0604); run: chmod go-rwx" \
  "mysql://cert@$s?tls=on&$ours"
chmod 0600 job.key
refuses 64 "the key $tmp/none: No such file" "mysql://cert@$s?tls=on&cert=$tmp/job.pem&key=$tmp/none"
refuses 64 'belong together' "mysql://cert@$s?tls=on&cert=$tmp/job.pem"
refuses 64 'for TLS only' "mysql://cert@$s?$ours"

# As a MySQL 8 that was just restarted: it greets with caching_sha2_password, and does not know the hash.
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
receive(line)
send(line, 3, b'\1\4')
with open('heard', 'wb') as file:
    file.write(receive(line))
PY
python3 login.py >login.port &
wait_until 20 test -s login.port
try 69 -n -k job -b "mysql://app@127.0.0.1:$(<login.port)/test" -- true
assert_equal "$secret" "$(tr -d '\0' <heard)" "password that the server heard by TLS ($(<err))"
