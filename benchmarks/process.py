"""A server process that is started, watched and ended, whatever happens in between."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

ROOT = Path(__file__).resolve().parent.parent

# Below the range from which systems give out source ports, so that no client takes ours first.
PORTS = range(20_000, 32_000)

HOST = "127.0.0.1"


class ServerError(RuntimeError):
    """The server did not start, or did not end by itself; the message shows its last output."""


class Server:
    """One running server, the leader of a process group of its own.

    A context manager: leaving it stops the server.

    Attributes:
        host, port: where it listens.
        command: what was started.
        exit_code: set once it has ended; negative if a signal ended it.
    """

    host = HOST

    def __init__(
        self,
        command: Sequence[str],
        port: int,
        *,
        env: Mapping[str, str] | None = None,
        cwd: Path = ROOT,
        cpu: int | None = None,
    ) -> None:
        """Start `command` without waiting for it; `start()` does that.

        Args:
            command: the arguments; nothing is passed through a shell.
            port: the port that the command was told to listen on.
            env: variables beside those of this process.
            cwd: the directory to run in; the checkout is importable from anywhere.
            cpu: pin all of it to this CPU, where the system can.
        """
        self.command = list(command)
        self.port = port
        self.exit_code: int | None = None
        # Unlinked from the start: nothing to clean up. Appending keeps parallel writers apart.
        self._output = tempfile.TemporaryFile("a+b")  # noqa: SIM115
        self._last_output = ""
        self._process = subprocess.Popen(
            self.command,
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=subprocess.STDOUT,
            cwd=cwd,
            env=_environment(env or {}),
            start_new_session=True,
        )
        if cpu is not None and hasattr(os, "sched_setaffinity"):
            # Early enough: the interpreter has not started a thread or a worker yet.
            os.sched_setaffinity(self.pid, {cpu})

    @property
    def pid(self) -> int:
        """The process that was started: a single server, or the master of workers."""
        return self._process.pid

    @property
    def url(self) -> str:
        """`http://HOST:PORT`, without a slash at the end."""
        return f"http://{self.host}:{self.port}"

    @property
    def running(self) -> bool:
        """Whether the process is still there."""
        return self.exit_code is None and self._process.poll() is None

    def workers(self) -> list[psutil.Process]:
        """The processes that the server started, oldest first."""
        try:
            return psutil.Process(self.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            return []

    def cpu_seconds(self) -> float:
        """CPU time used so far by the process and those it started."""
        total = 0.0
        for process in (psutil.Process(self.pid), *self.workers()):
            with contextlib.suppress(psutil.NoSuchProcess):
                used = process.cpu_times()
                total += used.user + used.system
        return total

    def output(self) -> str:
        """Everything written to standard output and error so far, or until it ended."""
        if self._output.closed:
            return self._last_output
        size = os.fstat(self._output.fileno()).st_size
        return os.pread(self._output.fileno(), size, 0).decode(errors="replace")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process itself, not to its workers."""
        self._process.send_signal(number)

    def wait(self, timeout: float = 10.0) -> int:
        """Wait until it has ended by itself, and return the exit code.

        Raises:
            ServerError: it is still there after `timeout` seconds; it is killed then.
        """
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerError(self._report(f"still there after {timeout:g} s, killed")) from None
        return self.kill()

    def stop(self, timeout: float = 10.0) -> int:
        """Ask it to end (SIGTERM to the process itself), and return the exit code.

        Calling it again returns the same code.

        Raises:
            ServerError: it is still there after `timeout` seconds; it is killed then.
        """
        if self.exit_code is not None:
            return self.exit_code
        if self._process.poll() is None:
            # It may be stopped, by a test that wants to see what a stall does.
            self._process.send_signal(signal.SIGCONT)
            self._process.terminate()
        return self.wait(timeout)

    def kill(self) -> int:
        """End at once what is left of it and of all that it started; return the exit code."""
        if self.exit_code is None:
            group = self._group()
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
            self.exit_code = self._process.wait()
            psutil.wait_procs(group, timeout=1.0)
            self._last_output = self.output()
            self._output.close()
        return self.exit_code

    def wait_until_serving(self, timeout: float = 20.0) -> None:
        """Wait until the server reads requests, not only until it listens.

        It is sent a line that is no request, so that the app sees nothing of it; whatever comes
        back, the server is awake.

        Raises:
            ServerError: it ended, or did not answer within `timeout` seconds; it is killed then.
        """
        deadline = time.monotonic() + timeout
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                self.kill()
                raise ServerError(self._report(f"ended with {self.exit_code} while starting"))
            if self._answers(deadline):
                return
            time.sleep(0.02)
        self.kill()
        raise ServerError(self._report(f"did not answer within {timeout:g} s"))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        state = "running" if self.running else f"ended with {self.exit_code}"
        return f"<Server {self.url} pid={self.pid} {state}>"

    def _answers(self, deadline: float) -> bool:
        try:
            with socket.create_connection((self.host, self.port), timeout=1.0) as client:
                client.settimeout(min(1.0, max(0.05, deadline - time.monotonic())))
                client.sendall(b"\r\n?\r\n\r\n")
                client.recv(1)
        except OSError:
            # A reset too: a master that gives up resets what its workers never accepted.
            return False
        return self._listens()

    def _listens(self) -> bool:
        """Whether it is this server that answered, and not one that took the port before it."""
        for process in (psutil.Process(self.pid), *self.workers()):
            with contextlib.suppress(psutil.Error):
                for connection in process.net_connections("inet"):
                    if (connection.status, connection.laddr[1]) == (psutil.CONN_LISTEN, self.port):
                        return True
        return False

    def _group(self) -> list[psutil.Process]:
        """What is left of the group, apart from its leader: workers whose master is gone too."""
        members = []
        for process in psutil.process_iter():
            with contextlib.suppress(OSError):
                if process.pid != self.pid and os.getpgid(process.pid) == self.pid:
                    members.append(process)
        return members

    def _report(self, what: str) -> str:
        tail = "\n".join(self.output().splitlines()[-30:])
        return f"{' '.join(self.command)}: {what}\n{tail or '(no output)'}"


def free_port() -> int:
    """A port on which nobody listens now."""
    for port in random.sample(PORTS, 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            with contextlib.suppress(OSError):
                probe.bind((HOST, port))
                return port
    raise ServerError(f"no free port in {PORTS.start}..{PORTS.stop - 1}")


def _environment(extra: Mapping[str, str]) -> dict[str, str]:
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "PYTHONPATH": path, "PYTHONUNBUFFERED": "1", **extra}
