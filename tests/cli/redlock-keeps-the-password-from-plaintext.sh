#!/usr/bin/env bash
# A password is for servers with TLS where one of the list is rediss://: a server without a scheme is refused then,
# and hears nothing.
. "$(dirname "$0")/lib.sh"
cd "$tmp"
unset DLOCK_BACKEND
umask 077
need python3
secret=5ecretOfMine
echo "$secret" >password

# Listens without TLS, and keeps all that it is sent.
cat >listener.py <<'PY'
import socket, threading

def keep(connection):
    with open('heard', 'ab', buffering=0) as heard:
        heard.write(b'connected\n')
        while data := connection.recv(4096):
            heard.write(data)

listener = socket.create_server(('127.0.0.1', 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=keep, args=(listener.accept()[0],), daemon=True).start()
PY
python3 listener.py >port &
wait_until 20 test -s port
plain=127.0.0.1:$(<port)
"$DLOCK" backends --json | grep -qzP '"redlock"[^}]*"built_in": ?true' || skip "redlock is not built in"

# refused STATUS WHERE COMMAND...
refused() {
  local want=$1 where=$2 got=0
  shift 2
  "$@" "$DLOCK" run -k job --connect-timeout 0.5 --password-file password "${flags[@]}" -- touch ran 2>err || got=$?
  [[ ! -e heard ]] || fail "a server without TLS heard: $(tr '\0' '?' <heard)"
  assert_equal "$want" "$got" "the status with the servers in $where ($(<err))"
  assert_contains "$(<err)" "$where: server 2 of 3 has no scheme"
  assert_contains "$(<err)" "rediss://"
  assert_lacks "$(<err)" "$secret"
  [[ ! -e ran ]] || fail "the command was run"
}
list=rediss://127.0.0.1:1,$plain,redis://127.0.0.1:2
flags=(-b redlock -S "$list")
refused 64 --server env
flags=(-b redlock://app@ -S "RedisS://127.0.0.1:1" -S "$plain" -S 127.0.0.1:2)
refused 64 --server env
flags=(-b redlock)
refused 64 DLOCK_SERVERS env DLOCK_SERVERS="$list"
echo "{\"backend\": \"db\", \"backends\": {\"db\": {\"url\": \"redlock://\", \"servers\": \"$list\"}}}" >config.json
flags=(--config "$tmp/config.json")
refused 78 servers env
echo "{\"backends\": {\"db\": {\"url\": \"redlock://\", \"servers\": [\"${list//,/\", \"}\"]}}}" >config.json
flags=(--config "$tmp/config.json" -b db)
refused 78 servers env

# A redis:// URL says that it is to be so.
got=0
DLOCK_SERVERS=rediss://127.0.0.1:1,redis://$plain "$DLOCK" run -b redlock -k job -n --connect-timeout 0.5 \
  --password-file password -- true 2>err || got=$?
assert_equal 69 "$got" "the status with a redis:// URL ($(<err))"
wait_until 20 grep -q "$secret" heard
