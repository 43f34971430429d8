"""What a person sees of a Neovim: the grid that it draws for an attached user interface."""

from collections.abc import Callable
from typing import Any


class Screen:
    """Follows the redraw notifications of ``nvim_ui_attach`` with ``ext_linegrid``."""

    def __init__(self, width: int, height: int) -> None:
        self.cells = [[" "] * width for _ in range(height)]
        self.cursor = (0, 0)
        self.bells = 0
        self._handlers: dict[str, Callable[..., None]] = {
            "grid_resize": self._resize,
            "grid_clear": self._clear,
            "grid_line": self._line,
            "grid_scroll": self._scroll,
            "grid_cursor_goto": self._go,
            "bell": self._bell,
        }

    def redraw(self, updates: list[Any]) -> None:
        """Takes in one notification: a list of ``[name, arguments, arguments...]``."""
        for name, *calls in updates:
            handler = self._handlers.get(name)
            if handler is not None:
                for arguments in calls:
                    handler(*arguments)

    def lines(self) -> list[str]:
        """The rows from top to bottom, without blanks at their ends."""
        return ["".join(row).rstrip() for row in self.cells]

    def _resize(self, _grid: int, width: int, height: int) -> None:
        kept = [row[:width] + [" "] * (width - len(row)) for row in self.cells[:height]]
        self.cells = kept + [[" "] * width for _ in range(height - len(kept))]

    def _clear(self, _grid: int) -> None:
        self.cells = [[" "] * len(row) for row in self.cells]

    def _line(self, _grid: int, row: int, column: int, cells: list[Any], *_: Any) -> None:
        for text, *rest in cells:
            times = rest[1] if len(rest) > 1 else 1
            self.cells[row][column : column + times] = [text] * times
            column += times

    def _scroll(
        self, _grid: int, top: int, bottom: int, left: int, right: int, rows: int, *_: Any
    ) -> None:
        before = [row[:] for row in self.cells]
        for row in range(top, bottom):
            if top <= row + rows < bottom:
                self.cells[row][left:right] = before[row + rows][left:right]

    def _go(self, _grid: int, row: int, column: int) -> None:
        self.cursor = (row, column)

    def _bell(self) -> None:
        self.bells += 1
