"""Reading a shell command line as a careful guard would: what would run, and how sure is that?

This is no shell. It finds the simple commands of a line, those inside substitutions, here-documents
for shells and ``sh -c`` included, and says whether it understood everything. Rules that allow rely
on certainty; rules that deny look at everything that was found.
"""

import re
from typing import Final

from attrs import define, evolve, field, frozen

from .braces import LONGEST, expanded
from .wrappers import ASSIGNMENT, MOST, SHELLS, program_name, scripts_of, wrapped

MAX_LENGTH: Final = 128 * 1024
"""Characters. Linux runs no longer one."""
_MAX_DEPTH: Final = 8
_LINE_END = re.compile(r"(?<!\\)\r\n")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?!$-]")

_RESERVED = frozenset(
    [
        "if",
        "then",
        "else",
        "elif",
        "fi",
        "for",
        "while",
        "until",
        "do",
        "done",
        "case",
        "esac",
        "in",
        "select",
        "function",
        "time",
        "!",
        "{",
        "}",
        "[[",
        "]]",
        "coproc",
    ]
)
_OPERATORS = ("&&", "||", ";;", "|&", ";", "|", "&", "\n", "(", ")")
_REDIRECTIONS = ("&>>", "<<<", "<<-", ">>", "<<", "<&", ">&", "<>", ">|", "&>", ">", "<")
_DESCRIPTORS = frozenset({"1", "2", "-"})


@frozen(kw_only=True)
class Simple:
    """One simple command: its words without their quotes, and what else belongs to it."""

    words: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    redirections: tuple[tuple[str, str], ...] = ()
    """Operator and target of each, those to ``/dev/null`` and to other descriptors left out."""
    expands: bool = False
    """Some word holds a variable, a substitution, or a quoting of unknown effect."""

    @property
    def plain(self) -> bool:
        """Nothing but words that mean themselves."""
        return bool(self.words) and not (self.assignments or self.redirections or self.expands)


@frozen(kw_only=True)
class Line:
    """A command line. `certain`: every part of it is among `commands` and was understood.

    `inner` are the commands inside of substitutions, here-documents and strings given to a shell.
    """

    commands: tuple[Simple, ...]
    inner: tuple[Simple, ...] = ()
    certain: bool = True

    @property
    def every(self) -> tuple[Simple, ...]:
        return (*self.commands, *self.inner)

    @property
    def only(self) -> Simple | None:
        """The command, when the line is one plain command and nothing else."""
        if self.certain and len(self.commands) == 1 and not self.inner and self.commands[0].plain:
            return self.commands[0]
        return None


def read(line: str) -> Line:
    """The simple commands of `line`, a POSIX or bash command line."""
    return _read(line, 0)


def _read(line: str, depth: int) -> Line:
    if depth > _MAX_DEPTH or len(line) > MAX_LENGTH:
        return Line(commands=(), certain=False)
    # To bash a carriage return is a letter like any other. So a backslash in front of it quotes it,
    # and the line end behind it ends the command: that is no continuation.
    reader = _Reader(_LINE_END.sub("\n", line), depth)
    reader.certain = "\r" not in line
    reader.run()
    return Line(commands=tuple(reader.commands), inner=tuple(reader.inner), certain=reader.certain)


@frozen
class _Heredoc:
    delimiter: str
    quoted: bool
    strip_tabs: bool
    for_shell: bool


@frozen
class _Word:
    text: str
    quoted: bool
    expands: bool
    braces: bool
    """Some brace is not quoted."""


@define(kw_only=True)
class _Pending:
    """The simple command that is being read."""

    words: list[str] = field(factory=list[str])
    assignments: list[str] = field(factory=list[str])
    redirections: list[tuple[str, str]] = field(factory=list[tuple[str, str]])
    braces: set[int] = field(factory=set[int])
    """Which of the words hold a brace that is not quoted."""
    expands: bool = False


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.depth = depth
        self.at = 0
        self.certain = True
        self.commands: list[Simple] = []
        self.inner: list[Simple] = []
        self._now = _Pending()
        self._heredocs: list[_Heredoc] = []

    def run(self) -> None:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif self.text.startswith("\\\n", self.at):
                self.at += 2
            elif char == "#":
                end = self.text.find("\n", self.at)
                self.at = len(self.text) if end < 0 else end
            elif (char in "<>" and self.text[self.at + 1 : self.at + 2] == "(") or char in "()":
                self._parenthesis(char)
            elif redirection := self._starting(_REDIRECTIONS):
                self._redirect(redirection)
            elif operator := self._starting(_OPERATORS):
                self.at += len(operator)
                if operator == "&":
                    self.certain = False  # it goes on in the background
                self._end_command()
                if operator == "\n":
                    self._skip_heredocs()
            else:
                self._take(self._word())
        self._end_command()
        if self._heredocs:
            self.certain = False

    def _starting(self, operators: tuple[str, ...]) -> str | None:
        return next((o for o in operators if self.text.startswith(o, self.at)), None)

    def _parenthesis(self, char: str) -> None:
        """Subshells, functions, process substitutions: their commands count, certainty is gone."""
        self.certain = False
        if char in "<>":
            self.at += 2
            self._now.expands = True
            self._substitution(self._until_closed())
            return
        self.at += 1
        self._end_command()

    def _take(self, word: _Word) -> None:
        now = self._now
        if word.expands:
            now.expands = True
        if not now.words and not word.quoted and word.text in _RESERVED:
            self.certain = False
        elif not now.words and ASSIGNMENT.match(word.text):
            now.assignments.append(word.text)
        elif (
            word.text.isdigit()
            and not word.quoted
            and self.text[self.at : self.at + 1] in ("<", ">")
        ):
            pass  # the number of a descriptor
        else:
            if word.braces:
                now.braces.add(len(now.words))
            now.words.append(word.text)

    def _redirect(self, operator: str) -> None:
        self.at += len(operator)
        while self.text[self.at : self.at + 1] in (" ", "\t"):
            self.at += 1
        start = self.at
        target = self._word()
        if target.expands:
            self._now.expands = True
        if not self.text[start : self.at]:
            self.certain = False
        elif operator in ("<<", "<<-"):
            for_shell = bool(self._now.words) and program_name(self._now.words[0]) in SHELLS
            self._heredocs.append(
                _Heredoc(target.text, target.quoted, operator == "<<-", for_shell)
            )
            self._now.redirections.append((operator, target.text))
        elif operator == "<<<" and self._now.words and program_name(self._now.words[0]) in SHELLS:
            self._substitution(target.text)
            self._now.redirections.append((operator, target.text))
        elif target.text != "/dev/null" and not (
            target.text in _DESCRIPTORS and operator in (">&", "<&")
        ):
            self._now.redirections.append((operator, target.text))

    def _end_command(self) -> None:
        now, self._now = self._now, _Pending()
        if now.words or now.assignments or now.redirections or now.expands:
            simple = Simple(
                words=tuple(now.words),
                assignments=tuple(now.assignments),
                redirections=tuple(now.redirections),
                expands=now.expands,
            )
            self._found(simple)
            spelled = tuple(
                word
                for index, given in enumerate(simple.words)
                for word in (expanded(given) if index in now.braces else (given,))
            )
            if any(len(simple.words[index]) > LONGEST for index in now.braces):
                self.certain = False
            if spelled != simple.words:
                self._found(evolve(simple, words=spelled))

    def _found(self, simple: Simple) -> None:
        self.commands.append(simple)
        if len(wrapped(simple.words)) >= MOST:
            self.certain = False
        for script in scripts_of(simple.words):
            self._substitution(script)

    def _skip_heredocs(self) -> None:
        waiting, self._heredocs = self._heredocs, []
        for heredoc in waiting:
            lines: list[str] = []
            while True:
                if self.at >= len(self.text):
                    self.certain = False
                    break
                end = self.text.find("\n", self.at)
                end = len(self.text) if end < 0 else end
                line = self.text[self.at : end]
                self.at = min(end + 1, len(self.text))
                if (line.lstrip("\t") if heredoc.strip_tabs else line) == heredoc.delimiter:
                    break
                lines.append(line)
            body = "\n".join(lines)
            if heredoc.for_shell:
                self._substitution(body)
            elif not heredoc.quoted:
                self._expansions(body)

    # --- words -----------------------------------------------------------------------------------

    def _word(self) -> _Word:
        text: list[str] = []
        quoted = expands = braces = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char in " \t\n;|&()<>":
                break
            if char == "\\":
                quoted = True
                following = self.text[self.at + 1 : self.at + 2]
                if not following:
                    self.certain = False
                if following != "\n":
                    text.append(following)
                self.at += 2
            elif char == "'":
                quoted = True
                text.append(self._single_quoted())
            elif char == '"':
                quoted = True
                inside, inside_expands = self._double_quoted()
                text.append(inside)
                expands = expands or inside_expands
            elif char in "$`":
                piece, piece_expands = self._dollar()
                text.append(piece)
                expands = expands or piece_expands
            else:
                braces = braces or char == "{"
                text.append(char)
                self.at += 1
        return _Word("".join(text), quoted, expands, braces)

    def _single_quoted(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            self.certain = False
            end = len(self.text)
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside

    def _double_quoted(self) -> tuple[str, bool]:
        text: list[str] = []
        expands = False
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return "".join(text), expands
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                text.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif char in "$`":
                piece, piece_expands = self._dollar()
                text.append(piece)
                expands = expands or piece_expands
            else:
                text.append(char)
                self.at += 1
        self.certain = False
        return "".join(text), expands

    def _dollar(self) -> tuple[str, bool]:
        """What starts with ``$`` or a backtick. Variables stay as they are written."""
        start = self.at
        if self.text[self.at] == "`":
            end = self.at + 1
            while end < len(self.text) and self.text[end] != "`":
                end += 2 if self.text[end] == "\\" else 1
            if end >= len(self.text):
                self.certain = False
            self._substitution(self.text[self.at + 1 : end].replace("\\`", "`"))
            self.at = end + 1
            return self.text[start : self.at], True
        following = self.text[self.at + 1 : self.at + 2]
        if following == "(":
            self.at += 2
            inside = self._until_closed()
            if inside.startswith("("):
                self._expansions(inside)  # arithmetic, which can hold substitutions
            else:
                self._substitution(inside)
            return self.text[start : self.at], True
        if following == "{":
            end = self.text.find("}", self.at)
            end = len(self.text) - 1 if end < 0 else end
            inside = self.text[self.at + 2 : end]
            self.at = end + 1
            if not re.fullmatch(r"[A-Za-z0-9_@*#?!]+", inside):
                self.certain = False
                self._expansions(inside)
            return "$" + inside, True
        if following == "[":  # arithmetic of old
            self.certain = False
        if following == "'":  # $'…', whose escapes could spell anything
            self.certain = False
            self.at += 1
            raw = self._single_quoted()
            return _unescaped(raw), True
        if following == '"':
            self.at += 1
            return "", True
        name = _VARIABLE.match(self.text, self.at + 1)
        if name is None:
            self.at += 1
            return "$", False
        self.at = name.end()
        return self.text[start : self.at], True

    def _until_closed(self) -> str:
        """From here to the parenthesis that closes the one just passed; leaves `at` behind it."""
        start, level = self.at, 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 1
            elif char == "'":
                end = self.text.find("'", self.at + 1)
                self.at = len(self.text) if end < 0 else end
            elif char == "(":
                level += 1
            elif char == ")":
                level -= 1
                if level == 0:
                    self.at += 1
                    return self.text[start : self.at - 1]
            self.at += 1
        self.certain = False
        self.at = len(self.text)
        return self.text[start:]

    def _expansions(self, text: str) -> None:
        """Substitutions inside text that is no command itself."""
        for opening in re.finditer(r"\$\(|`", text):
            inner = _Reader(text, self.depth + 1)
            inner.at = opening.start()
            if self.depth + 1 > _MAX_DEPTH:
                self.certain = False
                return
            inner._dollar()
            self.inner.extend((*inner.commands, *inner.inner))

    def _substitution(self, script: str) -> None:
        found = _read(script, self.depth + 1)
        self.inner.extend(found.every)
        self.certain = self.certain and found.certain


def _unescaped(raw: str) -> str:
    return re.sub(
        r"\\(?:x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|(.))",
        lambda m: chr(int(m[1], 16)) if m[1] else chr(int(m[2], 8)) if m[2] else m[3],
        raw,
    )
