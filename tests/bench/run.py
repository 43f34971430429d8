"""Measures Callboard against its budgets, each beside a floor of the same run. ``make bench``.

    tests/bench/run.py [TOPIC...] [--quick] [--thorough]

Timings depend on the machine, so they decide nothing: the exit code tells only whether everything
could be measured.
"""

import argparse
import compileall
import os
import sys
import traceback
from pathlib import Path

import acp_mode
import agents
import appending
import footprint
import groups
import hosts
import large_store
import neovim
import peers
import recovering
import rooms
import schedules
import start_up
import turns
from figure import Figure, Topic
from rich.console import Console
from rich.table import Table

_TOPICS: tuple[Topic, ...] = (
    start_up.TOPIC,
    turns.TOPIC,
    acp_mode.TOPIC,
    agents.TOPIC,
    groups.TOPIC,
    rooms.TOPIC,
    schedules.TOPIC,
    peers.TOPIC,
    appending.TOPIC,
    large_store.TOPIC,
    footprint.TOPIC,
    hosts.TOPIC,
    recovering.TOPIC,
    neovim.TOPIC,
)
_ROOT = Path(__file__).parents[2]
_VERDICT_STYLE = {"met": "green", "NOT met": "bold red", "": ""}


def _compiled() -> None:
    """Bytecode for everything, as an installed package has it; a cold start must not compile."""
    for folder in ("server", "rpc_schema/callboard_rpc", "tests/bench"):
        compileall.compile_dir(_ROOT / folder, quiet=2)


def _table(figures: list[Figure]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for heading in ("figure", "ours", "floor", "against it", "target", ""):
        table.add_column(heading, justify="left" if heading == "figure" else "right")
    for figure in figures:
        *cells, verdict = figure.row()
        style = _VERDICT_STYLE[verdict]
        table.add_row(*cells, f"[{style}]{verdict}[/]" if style else verdict)
        if figure.note:
            table.add_row(f"  [dim]{figure.note}[/]")
    return table


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Measure Callboard against its budgets.")
    parser.add_argument(
        "topics",
        nargs="*",
        metavar="TOPIC",
        help=", ".join(f"{t.name} ({t.about})" for t in _TOPICS),
    )
    amount = parser.add_mutually_exclusive_group()
    amount.add_argument("--quick", action="store_true", help="a third of the samples")
    amount.add_argument("--thorough", action="store_true", help="three times the samples")
    arguments = parser.parse_args()
    unknown = set(arguments.topics) - {t.name for t in _TOPICS}
    if unknown:
        parser.error(
            f"no topic {', '.join(sorted(unknown))}; there are {', '.join(t.name for t in _TOPICS)}"
        )
    return arguments


def main() -> int:
    arguments = _arguments()
    thorough = 1 / 3 if arguments.quick else 3.0 if arguments.thorough else 1.0
    out = Console(width=max(Console().width, 118))
    _compiled()
    out.print(
        f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} at the start; median (min-max)"
    )
    broken = False
    figures: list[Figure] = []
    for topic in _TOPICS:
        if arguments.topics and topic.name not in arguments.topics:
            continue
        out.print(f"measuring {topic.about} ...", style="dim")
        try:
            measured = topic.measure(thorough)
        except Exception:
            broken = True
            traceback.print_exc()
            out.print(f"{topic.name} could not be measured", style="bold red")
        else:
            figures += measured
    out.print(_table(figures))
    out.print(f"load {os.getloadavg()[0]:.1f} at the end")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
