#!/usr/bin/env bash
# ctest: cost 10
# A server that comes back under another address, as a container does, is found by its name: by a holder
# and by a waiter.
. "$(dirname "$0")/lib.sh"
. "$(dirname "$0")/zookeeper.sh"
need python3 unshare mount
unshare -m true 2>/dev/null || skip "may not have mounts of its own"
# With a hosts file that is ours alone.
if [[ -z ${own_mounts-} ]]; then exec env own_mounts=1 unshare -m bash "$0" "$@"; fi

cd "$tmp"
start_zk a
cp /etc/hosts hosts
mount --bind hosts /etc/hosts
is_at() { printf '%s zk.test\n' "$1" >>hosts; }
# relay ADDRESS: passes connections to port $port of it on to the server, until it is killed.
port=
reserve_port port
relay() {
  python3 - "$1" "$port" "${zk_port[a]}" <<'PY' &
import asyncio, sys

async def copy(reader, writer):
    try:
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    writer.close()

async def serve(reader, writer):
    there = await asyncio.open_connection('127.0.0.1', int(sys.argv[3]))
    await asyncio.gather(copy(reader, there[1]), copy(there[0], writer))

async def main():
    server = await asyncio.start_server(serve, sys.argv[1], int(sys.argv[2]))
    print('serving', flush=True)
    await server.serve_forever()

asyncio.run(main())
PY
  relay=$!
}
serves() { (exec 3<>"/dev/tcp/$1/$port") 2>/dev/null; }

is_at 127.0.0.3
relay 127.0.0.3
wait_until 20 serves 127.0.0.3
export DLOCK_BACKEND=zookeeper DLOCK_SERVERS=zk.test:$port
hold --ttl 20s
"$DLOCK" run -k job --ttl 20s -- true 2>second.err &
second=$!
waiting() { [[ $("$DLOCK" show job -o waiting) == *1 ]]; }
wait_until 20 waiting

kill -KILL "$relay"
wait "$relay" 2>/dev/null || true
cp /etc/hosts without && grep -v zk.test without >hosts
is_at 127.0.0.4
relay 127.0.0.4
wait_until 20 serves 127.0.0.4
# The holder, the waiter, and who asks.
are_back() { (($(zk_number a zk_num_alive_connections) >= 3)); }
wait_until 15 are_back
release
expect_status 0 wait "$second"
kill -KILL "$relay"
