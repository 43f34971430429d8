"""``fs/*``: files that an agent has Callboard read and write, inside of the session's folders only."""

from functools import partial
from pathlib import Path

from callboard_rpc.approvals import ToolCallSubject
from callboard_rpc.common import CallId

from ...tools import beneath, textfile
from ...tools.base import PathDenied, Preview, ToolFailure
from ...tools.display import one_line, well_formed
from ...tools.files import READ_FILE, WRITE_FILE, WriteFile
from ...tools.offload import finished
from ...tools.workspace import FolderWorkspace
from ...turns.call import Call
from ...turns.turn import Turn
from ..contract import services
from ..peer import INVALID_PARAMS
from .asking import Asking
from .desk import NOT_FOUND, Refused
from .own_calls import OwnCalls


class Files:
    def __init__(
        self, turn: Turn, workspace: FolderWorkspace, asking: Asking, own: OwnCalls
    ) -> None:
        self._turn = turn
        self._workspace = workspace
        self._asking = asking
        self._own = own

    def _resolved(self, path: str) -> Path:
        if not path.startswith("/"):
            raise Refused(INVALID_PARAMS, "path: must be absolute")
        try:
            return self._workspace.resolve(path)
        except PathDenied as denied:
            raise Refused(INVALID_PARAMS, str(denied)) from None

    async def read(self, request: services.ReadTextFileRequest) -> services.ReadTextFileResponse:
        """A text file, or some lines of it; a read that policy allows leaves no trace in the log. Raises `Refused`:
        as not found where there is none."""
        path = self._resolved(request.path)
        await self._may_read(path, request)
        try:
            file = await finished(partial(textfile.read, self._workspace, path))
        except FileNotFoundError:
            name = beneath.shown(self._workspace, path)
            raise Refused(NOT_FOUND, f"there is no file {name}") from None
        except (ToolFailure, PathDenied) as failure:
            raise Refused(INVALID_PARAMS, str(failure)) from None
        except OSError as fault:
            raise Refused(INVALID_PARAMS, f"cannot be read: {fault.strerror}") from None
        text = _lines(file.text, request.line, request.limit)
        return services.ReadTextFileResponse(content=well_formed(text))

    async def _may_read(self, path: Path, request: services.ReadTextFileRequest) -> None:
        caller = self._turn.caller
        subject = ToolCallSubject(name=READ_FILE.name, arguments={"path": str(path)})
        call = Call(
            call_id=CallId(""),
            index=0,
            name=READ_FILE.name,
            provider_call_id=None,
            tool=READ_FILE,
            preview=Preview(
                title=f"Read {one_line(str(path))}", subject=subject, paths=(str(path),)
            ),
        )
        verdict = await caller.judge(call)
        if verdict.effect == "deny":
            raise Refused(INVALID_PARAMS, f"Denied: {verdict.reason}")
        if verdict.effect == "ask":
            await self._own.run(READ_FILE.name, path=str(path), start_line=request.line or None)

    async def write(self, request: services.WriteTextFileRequest) -> services.WriteTextFileResponse:
        """Writes a file: as part of the agent's call that was just allowed to change it so, once; else as a call of its
        own, that policy judges. Raises `Refused`."""
        path = self._resolved(request.path)
        now = await finished(partial(self._now, path))
        if now == request.content:
            return services.WriteTextFileResponse()
        if not self._asking.allows_write(str(path), now, request.content):
            await self._own.run(WRITE_FILE.name, path=str(path), content=request.content)
            return services.WriteTextFileResponse()
        context = self._turn.caller.context(CallId(""))
        if context.mode != "work":
            raise Refused(INVALID_PARAMS, f"Denied: in {context.mode} mode nothing is changed")
        try:
            async with self._turn.coordinator.hold():
                await WRITE_FILE.run(context, WriteFile(path=str(path), content=request.content))
        except ToolFailure as failure:
            raise Refused(INVALID_PARAMS, str(failure)) from None
        return services.WriteTextFileResponse()

    def _now(self, path: Path) -> str | None:
        """What the file is, if it is one that can be read."""
        try:
            return textfile.read(self._workspace, path).text
        except (ToolFailure, PathDenied, OSError):
            return None


def _lines(text: str, line: int | None, limit: int | None) -> str:
    if line in (None, 0, 1) and limit is None:
        return text
    kept = text.splitlines(keepends=True)[max((line or 1) - 1, 0) :]
    return "".join(kept if limit is None else kept[: max(limit, 0)])
