"""The editor's files: what its buffers hold, saved or not, is what tools read; what they write goes through it."""

import logging
from pathlib import Path
from typing import Final

from ...tools.textfile import TEXT_LIMIT_BYTES
from ..contract import services as acp
from ..peer import PeerClosed, PeerError
from .editor import Editor

_log = logging.getLogger(__name__)

_READ_S: Final = 2.0
_WRITE_S: Final = 10.0


class EditorFiles:
    """The files of one session that an editor has open. What it does not declare, or cannot do, is done by
    the tools themselves."""

    def __init__(self, editor: Editor, session_id: str) -> None:
        self._editor = editor
        self._session_id = session_id

    @property
    def is_offered(self) -> bool:
        able = self._editor.capabilities.fs
        return able.read_text_file or able.write_text_file

    async def read(self, path: Path) -> str | None:
        if not self._editor.capabilities.fs.read_text_file:
            return None
        try:
            answer: acp.ReadTextFileResponse = await self._editor.peer.request(
                "fs/read_text_file",
                acp.ReadTextFileRequest(session_id=self._session_id, path=str(path)),
                timeout_s=_READ_S,
            )
        except (PeerError, PeerClosed, TimeoutError) as fault:
            _log.info("the editor does not tell %s: %s", path, fault)
            return None
        return answer.content if len(answer.content) <= TEXT_LIMIT_BYTES else None

    async def write(self, path: Path, text: str) -> bool:
        if not self._editor.capabilities.fs.write_text_file:
            return False
        try:
            await self._editor.peer.request(
                "fs/write_text_file",
                acp.WriteTextFileRequest(session_id=self._session_id, path=str(path), content=text),
                timeout_s=_WRITE_S,
            )
        except (PeerError, PeerClosed, TimeoutError) as fault:
            _log.info("the editor does not write %s: %s", path, fault)
            return False
        return True
