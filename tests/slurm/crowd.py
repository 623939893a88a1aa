#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
# SPDX-FileCopyrightText: The cddp authors
"""Strangers at sockets that listen.

usage: crowd.py SECONDS COUNT ADDRESS:PORT...

For SECONDS, COUNT connections at a time are open or being opened, in turns to each
address. Every connection lasts a second and is then replaced by a new one. One that is
accepted sends what its turn says: the 13 bytes at which UCX ends its process (a magic
number, and the header of a message that is too long), the magic number alone (half a
handshake), random bytes, or nothing. Prints "attempts N, accepted N", then a line for
each ADDRESS:PORT that has accepted one."""
import collections
import errno
import os
import resource
import select
import socket
import sys
import time

MAGIC = bytes.fromhex("78563412bebafeca")
WORDS = (
    lambda: MAGIC + bytes.fromhex("00ffffff7f"),
    lambda: MAGIC,
    lambda: os.urandom(512),
    lambda: b"",
)
LASTS = 1.0


class Crowd:
    def __init__(self, addresses):
        self.addresses = addresses
        self.poll = select.epoll()
        self.open = collections.deque()  # (start, socket), the oldest first
        self.waiting = {}  # descriptor: (socket, address, words), not accepted yet
        self.attempts = 0
        self.accepted = collections.Counter()  # by address

    def enter(self):
        """Begin one more connection."""
        address = self.addresses[self.attempts % len(self.addresses)]
        words = WORDS[self.attempts // len(self.addresses) % len(WORDS)]
        stranger = socket.socket()
        stranger.setblocking(False)
        failed = stranger.connect_ex(address)
        if failed not in (0, errno.EINPROGRESS, errno.ECONNREFUSED):
            raise OSError(failed, os.strerror(failed), "%s:%d" % address)
        self.attempts += 1
        self.open.append((time.monotonic(), stranger))
        self.waiting[stranger.fileno()] = stranger, address, words
        self.poll.register(stranger, select.EPOLLOUT)

    def look(self, seconds):
        """Wait at most so long for the fate of connections."""
        for fd, _ in self.poll.poll(seconds):
            stranger, address, words = self.waiting.pop(fd)
            self.poll.unregister(fd)
            if stranger.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == 0:
                self.accepted[address] += 1
                try:
                    stranger.send(words())
                except OSError:
                    pass  # closed again by the other side

    def leave(self):
        """End the oldest connection."""
        _, stranger = self.open.popleft()
        if self.waiting.pop(stranger.fileno(), None):
            self.poll.unregister(stranger)
        stranger.close()


def main():
    seconds, count = float(sys.argv[1]), int(sys.argv[2])
    crowd = Crowd([(host, int(port)) for host, port in
                   (word.rsplit(":", 1) for word in sys.argv[3:])])
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        while crowd.open and crowd.open[0][0] + LASTS < time.monotonic():
            crowd.leave()
        while len(crowd.open) < count:
            crowd.enter()
        crowd.look(0.02)
    print("attempts %d, accepted %d" % (crowd.attempts, sum(crowd.accepted.values())))
    for address in crowd.accepted:
        print("%s:%d" % address)


main()
