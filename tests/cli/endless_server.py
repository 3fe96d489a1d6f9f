#!/usr/bin/env python3
"""A server that costs its client memory or time without end.

    endless_server.py ANSWER [NUMBER]   prints its port, and serves until it is ended

The client gets as far as its first question; what it is told then is what the functions below do.
"""
import socket
import struct
import sys
import threading

MIB = 1 << 20


def receive(connection, size):
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


# ZooKeeper: https://github.com/apache/zookeeper/blob/master/zookeeper-jute/src/main/resources/zookeeper.jute
CREATE2, EXISTS, GET, SET, CHILDREN, SYNC, CREATE_CONTAINER, CLOSE = 15, 3, 4, 5, 8, 9, 19, -11
STAT = struct.pack(">qqqqiiiqiiq", 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1)


# Each list of children is empty.
def zookeeper(connection, _):
    def frame(data):
        return struct.pack(">i", len(data)) + data

    def request():
        return receive(connection, struct.unpack(">i", receive(connection, 4))[0])

    former = struct.unpack(">q", request()[16:24])[0]
    if former != 0:  # there is no such session any more
        connection.sendall(frame(struct.pack(">iiqi", 0, 0, 0, 16) + bytes(17)))
        return
    connection.sendall(frame(struct.pack(">iiqi", 0, 10000, 12345, 16) + bytes(17)))
    while True:
        data = request()
        xid, kind = struct.unpack(">ii", data[:8])
        path = data[12:12 + struct.unpack(">i", data[8:12])[0]] if len(data) >= 12 else b""
        ok = struct.pack(">iqi", xid, 1, 0)
        if kind == CLOSE:
            return
        if kind == CHILDREN:
            connection.sendall(frame(ok + struct.pack(">i", 0)))
        elif kind in (CREATE2, CREATE_CONTAINER):
            connection.sendall(frame(ok + struct.pack(">i", len(path)) + path + STAT))
        elif kind == GET:
            connection.sendall(frame(ok + struct.pack(">i", 0) + STAT))
        elif kind in (EXISTS, SET):
            connection.sendall(frame(ok + STAT))
        elif kind == SYNC:
            connection.sendall(frame(ok + struct.pack(">i", len(path)) + path))
        else:
            connection.sendall(frame(ok))


# MySQL: https://mariadb.com/kb/en/clientserver-protocol/
def mysql(connection, _):
    def packet(sequence, data):
        return struct.pack("<I", len(data))[:3] + bytes([sequence & 255]) + data

    def read():
        header = receive(connection, 4)
        receive(connection, header[0] | header[1] << 8 | header[2] << 16)
        return header[3] + 1

    def text(data):
        return b"\xfd" + struct.pack("<I", len(data))[:3] + data

    capabilities = 0x000fa28b
    connection.sendall(packet(0, b"\x0a10.11.0-MariaDB\0" + struct.pack("<I", 7) + b"12345678\0" +
                              struct.pack("<H", capabilities & 0xffff) + b"\x2d\x02\0" +
                              struct.pack("<H", capabilities >> 16) + b"\x15" + bytes(10) +
                              b"123456789012\0mysql_native_password\0"))
    sequence = read()
    connection.sendall(packet(sequence, b"\0\0\0\x02\0\0\0"))
    sequence = read()
    # So many columns, and the name of each is of 4 MiB.
    connection.sendall(packet(sequence, b"\xfd\xff\xff\xff"))
    column = (b"\x03def\0\0\0" + text(bytes(4 * MIB)) + b"\0\x0c" +
              struct.pack("<HIBHB", 45, 1000, 253, 0, 0) + b"\0\0")
    while True:
        sequence += 1
        connection.sendall(packet(sequence, column))


# Redis: https://redis.io/docs/latest/develop/reference/protocol-spec/
def redis(connection, how):
    """how: names per SCAN, bytes added to each cursor, bytes of a lock's record, and whether SCAN ends."""
    names, long_cursor, record, ends = how

    def text(data):
        return b"$%d\r\n%s\r\n" % (len(data), data)

    file = connection.makefile("rb")
    cursor = 0
    while True:
        command = []
        header = file.readline()
        if not header:
            return
        for _ in range(int(header[1:])):
            command.append(file.read(int(file.readline()[1:]) + 2)[:-2])
        if command[0] == b"SCAN":
            cursor += 1
            found = [b"dlock:%d-%d" % (cursor, i) + b"x" * 400 for i in range(names)]
            shown = b"0" if ends else b"%d" % cursor + b"7" * long_cursor
            connection.sendall(b"*2\r\n" + text(shown) + b"*%d\r\n" % names + b"".join(map(text, found)))
        elif command[0] in (b"EVAL", b"EVALSHA"):  # somebody holds the lock, for long
            holder = b"0" * 32 + b":1"
            its = b"r" * record or b'{"id":"' + holder + b'","mode":"exclusive","slots":1}'
            connection.sendall(b"*10\r\n:0\r\n" + text(b"held") + b":3000\r\n:0\r\n:1\r\n:1\r\n:5\r\n" +
                               text(holder) + b":1000000\r\n" + text(its))
        elif command[0] == b"SUBSCRIBE":
            connection.sendall(b"*3\r\n" + text(b"subscribe") + text(command[1]) + b":1\r\n")
            flood = (b"*3\r\n" + text(b"message") + text(b"x") + text(b"y")) * 10000
            while command[1] == b"__redis__:invalidate":  # the last to be subscribed to
                connection.sendall(flood)
        else:
            connection.sendall(b":1\r\n")


# TLS: after the client's first words, requests to begin anew (RFC 5246, 7.4.1.1), which it skips.
def tls(connection, _):
    connection.recv(4096)
    print("begun", flush=True)
    while True:
        connection.sendall(bytes.fromhex("160303000400000000") * 4000)


ANSWERS = {
    "zookeeper-empty-list": (zookeeper, None),
    "mysql-columns": (mysql, None),
    "redis-scan": (redis, (20000, 0, 0, False)),
    "redis-empty-scan": (redis, (0, 0, 0, False)),
    "redis-cursors": (redis, (0, 1000, 0, False)),
    "redis-records": (redis, (100, 0, 8 * MIB, True)),
    "redis-messages": (redis, (0, 0, 0, False)),
    "tls": (tls, None),
}


def serve(connection):
    try:
        with connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            serving, how = ANSWERS[sys.argv[1]]
            serving(connection, how)
    except (EOFError, OSError):
        pass


listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
