"""What a terminal has printed since it was last looked at, by what it shows. Pure."""

from typing import Final

from attrs import define

GAP: Final = "\n[… a part of the output was not seen …]\n"
_ANCHOR_CHARS: Final = 256
"""So much of the end of what was seen is looked for in what has lost its beginning."""


@define
class Growth:
    """One terminal. A client tells the whole of what it keeps, of which the beginning may be gone, or lines
    drawn over."""

    shown: str = ""
    cut: bool = False

    def take(self, output: str, *, cut: bool, kept_chars: int) -> str:
        """What is new in `output`; `cut`: its beginning is gone. Of more than `kept_chars` only the end is
        taken."""
        output = output.replace("\r\n", "\n")
        if len(output) > kept_chars:
            output, cut = output[-kept_chars:], True
        before, self.shown, self.cut = self.shown, output, self.cut or cut
        if cut:
            return _behind(before, output)
        if output.startswith(before):
            return output[len(before) :]
        return _drawn_over(before, output)


def _behind(before: str, output: str) -> str:
    anchor = before[-_ANCHOR_CHARS:]
    at = output.rfind(anchor) if anchor else -1
    return GAP + output if at < 0 else output[at + len(anchor) :]


def _drawn_over(before: str, output: str) -> str:
    """From the first line on that is another one."""
    at = 0
    for old, new in zip(before.split("\n"), output.split("\n"), strict=False):
        if old != new:
            break
        at += len(new) + 1
    rest = output[at:]
    return rest if not rest or before.endswith("\n") else "\n" + rest
