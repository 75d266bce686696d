"""R in a separate process, for Python that runs inside R.

rpy2 would start a second R in this process, which ends it.
"""

import contextlib
import os
import signal
import subprocess
import tempfile
import threading
import uuid
import weakref
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from r_bridge import host
from r_bridge.exceptions import RError, RUnavailableError
from r_bridge.objects import Answer, RObject
from r_bridge.serial import GenericList, Handle, dumps, loads

PATIENCE = 10.0  # seconds that R has to answer after it was interrupted


class Worker:
    """A running Rscript that answers calls.

    Values cross in R's binary format, objects that stay in R by their numbers.
    """

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.folder = tempfile.TemporaryDirectory(prefix="r_bridge")
        self.path = Path(self.folder.name)
        self.answered = f"answered {uuid.uuid4()}"
        self.gone: list[int] = []
        for name in ("caller.R", "worker.R"):
            text = resources.files("r_bridge").joinpath(name).read_text("utf-8")
            (self.path / name).write_text(text, encoding="utf-8")
        self.process = self._started()

    def _started(self) -> "subprocess.Popen[str]":
        program = host.rscript()
        if program is None:
            raise RUnavailableError("Rscript is needed and not found.")
        libraries = os.pathsep.join(host.host_libraries())
        code, folder = str(self.path / "worker.R"), str(self.path)
        return subprocess.Popen(
            [program, "--no-save", "--no-restore", code, folder, self.answered],
            env={**os.environ, **({"R_LIBS": libraries} if libraries else {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            start_new_session=True,  # Ctrl-C is handed on, once
        )

    @property
    def alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def invoke(
        self,
        function: Any,
        arguments: Sequence[Any],
        options: Mapping[str, Any],
        *,
        keep: bool,
    ) -> Answer:
        """Call a function; return its value, or a handle if it stays in R."""
        given = [_sent(one) for one in (*arguments, *options.values())]
        with self.lock:
            gone, self.gone = self.gone, []
            request = {
                "f": _sent(function),
                "arguments": GenericList(given),
                "names": ["" for _ in arguments] + list(options),
                "keep": keep,
                "gone": np.array(gone, dtype=np.int64),
            }
            (self.path / "request").write_bytes(dumps(request))
            console = self._exchange()
            found = loads((self.path / "answer").read_bytes())
        return Answer(
            value=self._received(found["value"]),
            failed=None if found["failed"] is None else str(found["failed"][0]),
            warned=[str(one) for one in found["warned"]],
            printed=[*console, *(str(one) for one in found["printed"])],
            interrupted=bool(found["interrupted"][0]),
        )

    def _exchange(self) -> list[str]:
        """Send a request, wait, and return R's output."""
        try:
            assert self.process.stdin is not None
            self.process.stdin.write("go\n")
            self.process.stdin.flush()
            return self._wait()
        except BrokenPipeError:
            raise self._ended([]) from None
        except KeyboardInterrupt:
            self._interrupt()
            raise

    def _wait(self) -> list[str]:
        lines: list[str] = []
        assert self.process.stdout is not None
        for line in self.process.stdout:
            if line.strip() == self.answered:
                return [one for one in lines if one]
            lines.append(line.rstrip("\n"))
        raise self._ended(lines)

    def _ended(self, lines: list[str]) -> RError:
        code = self.process.wait()
        said = "\n".join(one for one in lines if one)
        return RError(
            f"the process of R ended with code {code}, and its objects are lost. "
            "The next call starts another." + (f"\n{said}" if said else "")
        )

    def _interrupt(self) -> None:
        """Pass Ctrl-C to R; end R if it does not respond."""
        self.process.send_signal(signal.SIGINT)
        patience = threading.Timer(PATIENCE, self.process.kill)
        patience.start()
        try:
            self._wait()
        except RError:
            pass
        finally:
            patience.cancel()

    def _received(self, value: Any) -> Any:
        """Replace handles by objects, at any depth."""
        if isinstance(value, dict) and isinstance(value.get("handle"), Handle):
            made = RemoteObject(int(value["handle"]))
            weakref.finalize(made, self._release, made.number)
            return RObject(made, tuple(map(str, value["classes"])))
        if isinstance(value, dict):
            return {name: self._received(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._received(one) for one in value]
        return value

    def _release(self, number: int) -> None:
        """Mark an object for release with the next request."""
        self.gone.append(number)

    def close(self) -> None:
        """End R by closing its input."""
        with contextlib.suppress(BrokenPipeError):
            self.process.communicate()
        self.folder.cleanup()


class RemoteObject:
    """An object in the process of R, released when it is no longer used here."""

    def __init__(self, number: int) -> None:
        self.number = number


def _sent(value: Any) -> Any:
    """Replace objects by their handles, at any depth."""
    if isinstance(value, RObject):
        return Handle(value.sexp.number)
    if isinstance(value, dict):
        return {name: _sent(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_sent(one) for one in value]
    return value
