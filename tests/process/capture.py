# SPDX-License-Identifier: Apache-2.0
"""Writes all packets of this network namespace to a file, until standard input ends.

  capture.py FILE
"""

import selectors
import socket
import sys

_ALL_PROTOCOLS = 3  # ETH_P_ALL
_PACKET_BYTES_MAX = 1 << 17
_BUFFER_BYTES = 64 << 20
_FILE_BYTES_MAX = 256 << 20


def main():
    packets = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ALL_PROTOCOLS))
    packets.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    ready = selectors.DefaultSelector()
    ready.register(packets, selectors.EVENT_READ)
    ready.register(sys.stdin, selectors.EVENT_READ)
    print("capturing", flush=True)
    with open(sys.argv[1], "wb") as file:
        while not any(key.fileobj is sys.stdin for key, _ in ready.select()):
            packet = packets.recv(_PACKET_BYTES_MAX)
            if file.tell() < _FILE_BYTES_MAX:
                file.write(packet)
        print(f"captured {file.tell()} bytes", flush=True)


if __name__ == "__main__":
    main()
