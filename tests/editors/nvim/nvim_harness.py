"""A real Neovim with the plugin, a real server behind it, real keys and the drawn screen.

    def test_it(open_editor):
        editor = open_editor(scenario=SCENARIO)
        editor.command("Callboard new")
        editor.keys("ihello<C-s>")
        editor.wait_for("Hello.")

Keys and drawing take their time: after `keys` nothing is known until `wait_for` saw it. Everything an
editor writes is below a folder of its own, so any number run beside each other, also on one store.
"""

import json
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from pathlib import Path
from typing import Any
from uuid import uuid4

import psutil
import pynvim
from nvim_screen import Screen
from nvim_versions import PLUGIN

from harness.editor_home import EditorHome
from harness.offspring import Offspring
from harness.processes import described, end, ended, is_server
from harness.waiting import wait_until

PATIENCE_S = 20.0
"""How long anything may take before a test fails; nothing waits for it to pass."""
TAG = "CALLBOARD_TESTS_EDITOR"
SERVER = (str(Path(sys.executable).parent / "callboard"), "serve")
"""The server of the environment that the tests run in."""

Wanted = str | re.Pattern[str] | Callable[[], Any]


class Gone(Exception):
    """Neovim ended, or its connection did."""


class Editor:
    """One Neovim, started with ``--clean`` and this checkout's plugin.

    `folder` holds its home, its XDG folders, its workspace and, unless `store` names another, the store.
    `options` are `vim.g.callboard`, in which the server's command is set; `server` replaces that command.
    `scenario` is what the scripted model plays, `model` a model id in its place. `arguments` go to
    Neovim, files to open among them; `init` is Lua that runs before plugins are loaded.
    """

    def __init__(
        self,
        nvim: Path,
        folder: Path,
        *,
        scenario: str | None = None,
        model: str | None = None,
        store: Path | None = None,
        workspace: Path | None = None,
        size: tuple[int, int] = (120, 40),
        server: Sequence[str] | None = SERVER,
        options: Mapping[str, Any] | None = None,
        environ: Mapping[str, str] | None = None,
        arguments: Sequence[str] = (),
        init: str = "",
    ) -> None:
        self._home = EditorHome(
            folder, scenario=scenario, model=model, store=store, workspace=workspace
        )
        self.folder = folder
        self.workspace = self._home.workspace
        self.store = self._home.store
        self.environ = self._environ(options, server, environ or {})
        self._sockets = Path(tempfile.mkdtemp(prefix="nvim-"))  # a socket's path must be short
        self._stderr_path = folder / f"nvim-stderr-{uuid4().hex[:8]}.txt"
        self.process = self._start(nvim, arguments, init)
        self.pid = self.process.pid
        self._offspring = Offspring(f"{TAG}={self.environ[TAG]}")
        self.screen_of_neovim = Screen(*size)
        self._drawn = threading.Condition()
        self._closed = False
        self._connection = _Connection(self.process, self._sockets / "nvim", self._redraw)
        try:
            self.call("nvim_ui_attach", *size, {"rgb": True, "ext_linegrid": True})
            self._check_startup()
        except BaseException:
            self.close()
            raise

    # --- doing ---

    def keys(self, keys: str) -> None:
        """Types keys in Neovim's notation: ``iText<Esc>``, ``<C-s>``; a literal ``<`` is ``<lt>``."""
        left = keys.encode()
        while left:
            left = left[self.call("nvim_input", left.decode()) :]

    def type(self, text: str) -> None:
        """Types a text as it is, its line ends as Enter."""
        self.keys(text.replace("<", "<lt>").replace("\n", "<CR>"))

    def command(self, command: str) -> None:
        """An Ex command. Raises `pynvim.NvimError` with what Neovim says."""
        self.call("nvim_command", command)

    def lua(self, code: str, *arguments: Any) -> Any:
        """Runs Lua, with `arguments` as its ``...``, and returns what it returns."""
        return self.call("nvim_exec_lua", code, list(arguments))

    def call(self, method: str, *arguments: Any) -> Any:
        """A function of Neovim's API; fails when it is not answered in time."""
        try:
            return self._connection.call(method, arguments)
        except FutureTimeout:
            raise AssertionError(self._told(f"Neovim does not answer {method}")) from None

    # --- seeing ---

    def screen(self) -> list[str]:
        """The rows that are drawn at the moment."""
        with self._drawn:
            return self.screen_of_neovim.lines()

    def text(self) -> str:
        """The drawn rows as one text."""
        return "\n".join(self.screen())

    def buffer(self, name: int | str = 0) -> list[str]:
        """The lines of a buffer: by number, or by a part of its name; the current one without."""
        return self.lua(
            "local b = ... if type(b) == 'string' then b = vim.fn.bufnr(b) end"
            " return vim.api.nvim_buf_get_lines(b, 0, -1, true)",
            name,
        )

    def messages(self) -> str:
        """All that ``:messages`` shows."""
        return self.call("nvim_exec2", "messages", {"output": True})["output"]

    def said(self) -> str:
        """What the plugin says, on one line: messages that fit the command line, and the others, which stand
        at the top right."""
        above = self.lua(
            "local said = {} for _, buf in ipairs(vim.api.nvim_list_bufs()) do"
            " if vim.bo[buf].filetype == 'callboard-message' then"
            " vim.list_extend(said, vim.api.nvim_buf_get_lines(buf, 0, -1, true)) end end"
            " return table.concat(said, ' ')"
        )
        return " ".join(f"{self.messages()} {above}".split())

    def mode(self) -> dict[str, Any]:
        """``{mode, blocking}``; answered also while Neovim waits for a key."""
        return self.call("nvim_get_mode")

    def wait_for(self, wanted: Wanted, deadline: float = PATIENCE_S, what: str = "") -> Any:
        """Waits until a text or a pattern is on the screen, or a function returns something true, which
        is returned. Fails with all that tells why: screen, messages, logs."""
        if not callable(wanted):
            what = what or f"{wanted!r} on the screen"
        return wait_until(
            self._check(wanted),
            what or str(wanted),
            deadline_s=deadline,
            pause=self._draw,
            told=self._told,
        )

    def _draw(self) -> None:
        """Lets Neovim draw for a moment, if it wants to."""
        self.mode()  # one round trip, so that Neovim is known to live
        with self._drawn:
            self._drawn.wait(0.02)

    def wait_gone(self, unwanted: str | re.Pattern[str], deadline: float = PATIENCE_S) -> None:
        """Waits until a text or a pattern is not on the screen."""
        check = self._check(unwanted)
        self.wait_for(lambda: not check(), deadline, f"{unwanted!r} gone from the screen")

    def _check(self, wanted: Wanted) -> Callable[[], Any]:
        if isinstance(wanted, str):
            return lambda: wanted in self.text()
        if isinstance(wanted, re.Pattern):
            return lambda: wanted.search(self.text())
        return wanted

    def logs(self) -> str:
        """The ends of all logs below the folder, and what Neovim wrote to stderr."""
        return "\n".join(self._home.logs(self._stderr_path))

    # --- processes ---

    def children(self) -> list[psutil.Process]:
        """All that live below this Neovim."""
        return self._offspring.below(self.pid)

    def server_pids(self) -> list[int]:
        """The servers that this Neovim started."""
        return [process.pid for process in self.children() if is_server(process)]

    def kill_server(self) -> None:
        """SIGKILL for every server, and their ends."""
        servers = [process for process in self.children() if is_server(process)]
        assert servers, self._told("there is no server to kill")
        for server in servers:
            server.send_signal(signal.SIGKILL)
        self.wait_for(lambda: all(map(ended, servers)), what="the end of killed servers")

    def kill(self) -> None:
        """SIGKILL for Neovim itself, with its end."""
        self.children()
        self.process.kill()
        self.process.wait(PATIENCE_S)

    def close(self) -> None:
        """``:qa!``, unless Neovim is gone already; fails when it or anything that it started stays."""
        if self._closed:
            return
        self._closed = True
        try:
            self.children()
            stayed = self._quit()
            left = self._offspring.left(PATIENCE_S)
            logs = self.logs() if stayed or left else ""
            end(left)
            assert not stayed, f"Neovim did not end by :qa!\n{logs}"
            assert not left, f"left running: {[described(p) for p in left]}\n{logs}"
        finally:
            self._connection.close()
            self._release()

    def _quit(self) -> bool:
        """Whether Neovim had to be killed."""
        if self.process.poll() is None:
            self._connection.send("nvim_input", "<C-\\><C-n>")
            self._connection.send("nvim_command", "qa!")
        try:
            self.process.wait(PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(PATIENCE_S)
            return True
        return False

    # --- beginning, ending, failing ---

    def _environ(
        self,
        options: Mapping[str, Any] | None,
        server: Sequence[str] | None,
        more: Mapping[str, str],
    ) -> dict[str, str]:
        """All of it, with the plugin's options."""
        command = {} if server is None else {"server": {"cmd": list(server)}}
        return {
            **self._home.environ(),
            "TERM": "xterm-256color",
            "NVIM_LOG_FILE": str(self._home.home / "state" / "nvim.log"),
            TAG: uuid4().hex,
            "TESTS_PLUGIN_OPTIONS": json.dumps(_merged(command, options or {})),
            **more,
        }

    def _start(self, nvim: Path, arguments: Sequence[str], init: str) -> "subprocess.Popen[bytes]":
        """With its input open for as long as the tests run: whatever ends them ends Neovim, too."""
        script = self.folder / f"init-{uuid4().hex[:8]}.lua"
        script.write_text(
            f"vim.opt.runtimepath:prepend({json.dumps(str(PLUGIN))})\n"
            "vim.g.callboard = vim.json.decode(vim.env.TESTS_PLUGIN_OPTIONS)\n"
            "vim.env.TESTS_PLUGIN_OPTIONS = nil\n"
            "vim.opt.shortmess:append('I')\n" + init,
            "utf-8",
        )
        with self._stderr_path.open("wb") as stderr:
            return subprocess.Popen(
                [
                    nvim, "--embed", "--headless", "--clean", "-n",
                    "--listen", self._sockets / "nvim", "--cmd", f"luafile {script}", *arguments,
                ],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                cwd=self.workspace,
                env=self.environ,
            )  # fmt: skip

    def _check_startup(self) -> None:
        blocked = self.mode()["blocking"]
        assert not blocked, self._told("Neovim waits for a key in its start")
        faults = re.search(r"^E\d+:", self.messages(), re.MULTILINE)
        assert not faults, self._told("Neovim did not start well")

    def _redraw(self, updates: list[Any]) -> None:
        with self._drawn:
            self.screen_of_neovim.redraw(updates)
            self._drawn.notify_all()

    def _told(self, fault: str) -> str:
        """A fault with all that may explain it; asks Neovim nothing that it would have to wait for."""
        width = max(map(len, self.screen()), default=0)
        parts = [fault, "┌" + "─" * width, *("│" + row for row in self.screen()), "└" + "─" * width]
        try:
            mode = self._connection.call("nvim_get_mode", (), deadline=2)
            parts.append(f"mode: {mode}")
            if not mode["blocking"]:
                output = ("messages", {"output": True})
                said = self._connection.call("nvim_exec2", output, deadline=2)["output"]
                parts.append(f"messages:\n{said}")
        except (FutureTimeout, Gone, pynvim.NvimError) as silence:
            parts.append(f"Neovim does not say its mode or its messages: {silence!r}")
        parts += ["processes:", *map(described, self.children()), self.logs()]
        return "\n".join(parts)

    def _release(self) -> None:
        if self.process.stdin is not None:
            self.process.stdin.close()
        shutil.rmtree(self._sockets, ignore_errors=True)

    def __enter__(self) -> "Editor":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _Connection:
    """pynvim on a thread of its own: takes in what Neovim draws while a test thinks, and no call waits
    for ever."""

    def __init__(
        self,
        process: "subprocess.Popen[bytes]",
        address: Path,
        redraw: Callable[[list[Any]], None],
    ) -> None:
        self._process = process
        self._address = address
        self._redraw = redraw
        self._open: set[Future[Any]] = set()
        self._lock = threading.Lock()
        self._gone = False
        self._ready: Future[pynvim.Nvim] = Future()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._nvim = self._ready.result(PATIENCE_S)

    def call(self, method: str, arguments: Sequence[Any], deadline: float = PATIENCE_S) -> Any:
        """The result. Raises `pynvim.NvimError`, `Gone`, or `TimeoutError`."""
        return self.send(method, *arguments).result(deadline)

    def send(self, method: str, *arguments: Any) -> "Future[Any]":
        answer: Future[Any] = Future()
        with self._lock:
            if self._gone:
                answer.set_exception(Gone("Neovim is gone"))
                return answer
            self._open.add(answer)

        def ask() -> None:
            try:
                result = self._nvim.request(method, *arguments)
            except (OSError, EOFError):
                self._settle(answer, answer.set_exception, Gone("Neovim ended"))
            except BaseException as fault:
                self._settle(answer, answer.set_exception, fault)
            else:
                self._settle(answer, answer.set_result, result)

        try:
            self._nvim.async_call(ask)
        except RuntimeError:  # its loop was closed just now
            self._settle(answer, answer.set_exception, Gone("Neovim is gone"))
        return answer

    def close(self) -> None:
        """After Neovim has ended."""
        self._thread.join(PATIENCE_S)

    def _run(self) -> None:
        try:
            nvim = self._connect()
        except BaseException as fault:
            self._ready.set_exception(fault)
            return
        self._ready.set_result(nvim)
        try:
            nvim.run_loop(None, self._notified)
        except (OSError, EOFError):
            pass
        finally:
            with self._lock:
                self._gone = True
                open_ = [*self._open]
            for answer in open_:
                self._settle(answer, answer.set_exception, Gone("Neovim ended"))
            nvim.close()

    def _connect(self) -> pynvim.Nvim:
        ends = time.monotonic() + PATIENCE_S
        while True:
            try:
                return pynvim.attach("socket", path=str(self._address))
            except (FileNotFoundError, ConnectionRefusedError):
                assert self._process.poll() is None, "Neovim ended at once"
                assert time.monotonic() < ends, "Neovim does not listen"
                time.sleep(0.005)  # a socket that appears sends no event

    def _notified(self, name: str, arguments: list[Any]) -> None:
        if name == "redraw":
            self._redraw(arguments)

    def _settle(self, answer: "Future[Any]", settle: Callable[[Any], None], value: Any) -> None:
        with self._lock:
            waited_for = answer in self._open
            self._open.discard(answer)
        if waited_for:
            settle(value)


def _merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**below, **above}
    for key in below.keys() & above.keys():
        if isinstance(below[key], Mapping) and isinstance(above[key], Mapping):
            merged[key] = _merged(below[key], above[key])
    return merged
