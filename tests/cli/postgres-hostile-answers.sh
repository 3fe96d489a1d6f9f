#!/usr/bin/env bash
# A PostgreSQL server that answers too little, out of order or without end costs neither memory nor time.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/postgres.sh"
need python3
cd "$tmp"
product=postgres
. "$TEST_SOURCE/tests/cli/refusals.sh"

cat >hostile.py <<'PY'
import socket, struct, threading

def message(kind, body=b''):
    return kind + struct.pack('!I', len(body) + 4) + body

done = message(b'1') + message(b'2') + message(b'n') + message(b'C', b'BEGIN\0')
ready = message(b'Z', b'I')
greeting = (message(b'R', struct.pack('!I', 0)) + message(b'S', b'server_version\0' + b'15.0\0')
            + message(b'S', b'client_encoding\0UTF8\0'))
notices = message(b'N', b'SNOTICE\0C00000\0Mhello\0\0') * 500

def row(value):
    columns = struct.pack('!H', 1) + b'c\0' + struct.pack('!IHIhih', 0, 0, 25, -1, -1, 0)
    return message(b'1') + message(b'2') + message(b'T', columns) + message(b'D', struct.pack('!HI', 1, len(value)) + value)

one = row(b'1') + message(b'C', b'SELECT 1\0')
set_up = done + one + done

def for_ever(connection, words):
    while True:
        connection.sendall(words)

def talk(connection, mode):
    try:
        while struct.unpack('!I', connection.recv(65536)[4:8])[0] == 80877103:  # wants TLS
            connection.sendall(b'N')
        if mode == 'startup':
            connection.sendall(greeting)
            for_ever(connection, notices)
        connection.sendall(greeting + message(b'K', struct.pack('!II', 1, 1)) + ready)
        while connection.recv(65536):
            if mode == 'few':
                connection.sendall(set_up + one + ready)
            elif mode == 'many':
                connection.sendall(set_up + one * 100 + ready)
            elif mode == 'notices':
                connection.sendall(set_up)
                for_ever(connection, notices)
            elif mode == 'rows':
                connection.sendall(set_up + row(b'1'))
                for_ever(connection, message(b'D', struct.pack('!HI', 1, 60000) + b'x' * 60000))
            elif mode == 'copy':
                connection.sendall(set_up + message(b'1') + message(b'2') + message(b'G', b'\0\0\0'))
    except OSError:
        pass

def serve(mode):
    listener = socket.create_server(('127.0.0.1', 0))
    print(mode, listener.getsockname()[1], flush=True)
    def run():
        while True:
            threading.Thread(target=talk, args=(listener.accept()[0], mode), daemon=True).start()
    threading.Thread(target=run).start()

for mode in 'startup', 'few', 'many', 'notices', 'rows', 'copy':
    serve(mode)
PY
python3 hostile.py >ports &
wait_until 20 grep -qs copy ports
while read -r name number; do
  port[$name]=$number
done <ports
ulimit -v 1000000
for method in postgres postgres-row; do
  for name in few many rows copy; do
    refuses 69 "127.0.0.1:${port[$name]}" "$method://app@127.0.0.1:${port[$name]}/test" --nonblock
  done
  for name in startup notices; do
    refuses 69 'no answer' "$method://app@127.0.0.1:${port[$name]}/test" --nonblock
  done
  for name in rows copy; do
    looks_refused 69 "127.0.0.1:${port[$name]}" list -b "$method://app@127.0.0.1:${port[$name]}/test"
  done
done
