#!/usr/bin/env python3
"""A proxy to a ZooKeeper server that damages one answer.

    zookeeper_damage.py PORT FILE   prints its own port, and serves until it is ended

FILE has the number of a request (OpCode in ZooDefs.java) and what is done to the next answer to such a one, which is a
name of DAMAGES.  The file is removed when that is done; without it nothing is changed.
"""
import os
import socket
import struct
import sys
import threading

HEADER = 16  # xid, zxid, error
STAT = 68


def text(value):
    return struct.pack(">i", len(value)) + value


DAMAGES = {
    # Of a list of children.
    "empty-list": lambda answer: answer[:HEADER] + struct.pack(">i", 0),
    # Of a create.
    "short-path": lambda answer: answer[:HEADER] + text(b"/x") + answer[-STAT:],
    "no-name": lambda answer: answer[:HEADER] + text(path_of(answer).rpartition(b"/")[0] + b"/") + answer[-STAT:],
}


def path_of(answer):
    return answer[HEADER + 4:HEADER + 4 + struct.unpack_from(">i", answer, HEADER)[0]]


def frame_from(file):  # struct.error at its end
    return file.read(struct.unpack(">i", file.read(4))[0])


def damaged(answer, kind):
    try:
        with open(control, encoding="ascii") as file:
            wanted, damage = file.read().split()
    except (OSError, ValueError):
        return answer
    if kind != int(wanted):
        return answer
    os.unlink(control)
    return DAMAGES[damage](answer)


class Pair:
    def __init__(self, client):
        self.client = client
        self.server = socket.create_connection(("127.0.0.1", upstream))
        self.kinds = {}  # of the requests, by their xid
        threading.Thread(target=self.run, args=(self.pass_requests,), daemon=True).start()
        threading.Thread(target=self.run, args=(self.pass_answers,), daemon=True).start()

    def run(self, work):
        try:
            work()
        except (struct.error, OSError):
            pass
        for end in (self.client, self.server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pass_requests(self):
        file = self.client.makefile("rb")
        self.server.sendall(text(frame_from(file)))  # the one for a session
        while True:
            data = frame_from(file)
            xid, kind = struct.unpack_from(">ii", data)
            self.kinds[xid] = kind
            self.server.sendall(text(data))

    def pass_answers(self):
        file = self.server.makefile("rb")
        self.client.sendall(text(frame_from(file)))
        while True:
            data = frame_from(file)
            kind = self.kinds.get(struct.unpack_from(">i", data)[0])
            self.client.sendall(text(damaged(data, kind)))


upstream, control = int(sys.argv[1]), sys.argv[2]
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
while True:
    Pair(listener.accept()[0])
