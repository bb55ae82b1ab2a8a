"""The last tier: a process that answers as a file tells it to, down to single bytes.

    python -m tests.health.chain.backend PORT FOLDER

The file `mode` in the folder is read for each connection; `server.pem` in it, if there is one,
makes it speak TLS.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import struct
import sys
import threading
import time
from pathlib import Path

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
ERROR = b"HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n"
LONGEST = 30.0


def behave(connection: socket.socket, head: bytes, mode: str) -> None:
    """Answer one request."""
    line = head.split(b"\r\n")[0]
    if b"/hold/" in line:
        # What keeps a client's pool busy, however well this server is.
        time.sleep(min(LONGEST, float(line.split()[1].rpartition(b"/")[2])))
        mode = "ok"
    if mode == "ok":
        connection.sendall(OK)
    elif mode == "error":
        connection.sendall(ERROR)
    elif mode == "slow":
        time.sleep(2.0)
        connection.sendall(OK)
    elif mode == "trickle":
        for byte in OK:
            connection.sendall(bytes([byte]))
            time.sleep(0.1)
    elif mode == "half-closed":
        connection.shutdown(socket.SHUT_WR)
        time.sleep(2.0)
    elif mode == "cut-short":
        connection.sendall(OK[:-1])
    elif mode == "reset":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def serve(connection: socket.socket, folder: Path) -> None:
    """Read one head, and behave."""
    certificate = folder / "server.pem"
    with contextlib.suppress(OSError):
        connection.settimeout(LONGEST)
        if certificate.exists():
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            connection = context.wrap_socket(connection, server_side=True)
        with connection:
            head = b""
            while b"\r\n\r\n" not in head:
                received = connection.recv(4096)
                if not received:
                    return
                head += received
            behave(connection, head, (folder / "mode").read_text())
    connection.close()


def main(port: int, folder: Path) -> None:
    """Serve until the process is ended."""
    with socket.create_server(("127.0.0.1", port), backlog=128) as listener:
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, folder), daemon=True).start()


if __name__ == "__main__":
    main(int(sys.argv[1]), Path(sys.argv[2]))
