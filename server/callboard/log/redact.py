"""Secrets never reach the log, the wire or an error: the choke point that sees to it.

Two kinds are hidden: text that has the shape of a well-known credential (session-messaging 12),
and exact values that the process knows to be secret, such as the keys in its configuration. Each
becomes a typed placeholder, so that a reader still sees what stood there.

The common case, nothing to hide, costs one scan by `_SUSPECT`, which looks only at the few
characters that every credential has in a telling place. The real patterns run when it finds one.
"""

import json
import logging
import re
import threading
from collections.abc import Iterable
from html import escape
from typing import Final, Literal

from attrs import frozen

MIN_SECRET_LENGTH = 8
"""Characters. A shorter value is too likely to be an ordinary word."""

_NOT_SECRETS = frozenset(
    {"not-needed", "lm-studio", "no-key-required", "sk-no-key-required", "placeholder", "changeme"}
)
"""What people give as a key to a local server that wants none. Hiding these would blind ordinary text."""


PLACEHOLDER: Final = "[redacted:"
"""How whatever stands in a secret's place begins."""


def _starts(prefix: str, *, apart_from: str = "A-Za-z0-9_-") -> str:
    """A pattern for `prefix` (of fixed width) where a word starts.

    Inside JSON that is itself a string's value, a line end is written as a backslash and a letter,
    and that letter is not part of the word. What must not be before the prefix is looked for
    behind it, so that the search can skip from one literal prefix to the next.
    """
    return rf"{prefix}(?:(?<![{apart_from}]{prefix})|(?<=\\[nrt]{prefix}))"


def _word(prefix: str) -> str:
    """`_starts` for prefixes that are telling enough to stand behind a dash or an underscore."""
    return _starts(prefix, apart_from="A-Za-z0-9")


_SUSPECT = re.compile(
    r"""[-_.ABb](?:
      (?<=-)(?:
          (?<=sk-)(?:(?<![A-Za-z0-9_-]sk-)|(?<=\\[nrt]sk-))
        | (?<=xox[a-z]-) | (?<=xapp-) | (?<=pypi-) | (?<=glpat-)
        | (?<=-----)(?=BEGIN\ )
      )
    | (?<=_)(?:
          (?<=[sr]k_)(?=live_|test_) | (?<=gh[opusr]_) | (?<=github_)(?=pat_) | (?<=whsec_)
        | (?<=npm_) | (?<=gsk_) | (?<=hf_) | (?i:(?<=secret_)(?=access_key))
      )
    | (?<=\.)(?: (?<=SG\.) | (?<=hooks\.)(?=slack) | (?=eyJ) )
    | (?<=A)(?: KIA | SIA | Iza | ccessKey )
    | (?<=[Bb])(?i:earer\s)
    )""",
    re.VERBOSE,
)


@frozen
class _Shape:
    """A credential's pattern. `needles`: one of them is in every text that the pattern matches."""

    placeholder: str
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    keep: Literal["nothing", "prefix"] = "nothing"
    """With ``prefix``, the pattern's first group stays: it tells what the secret was for."""

    def hide(self, text: str) -> str:
        if not any(needle in text for needle in self.needles):
            return text
        if self.keep == "prefix":
            return self.pattern.sub(rf"\g<1>{self.placeholder}", text)
        return self.pattern.sub(self.placeholder, text)


def _shape(
    kind: str,
    needles: tuple[str, ...],
    pattern: str,
    keep: Literal["nothing", "prefix"] = "nothing",
) -> _Shape:
    return _Shape(f"{PLACEHOLDER}{kind}]", needles, re.compile(pattern, re.ASCII), keep)


# Between BEGIN and END: base64, headers, and what quoting, diffs and listings put around the lines.
_ARMOUR = r"""(?:[A-Za-z0-9+/=,:.\s"'\\|>]|-(?!----))*+"""
_LINES = r"(?:(?:\s|\\[nrt])*+[A-Za-z0-9+/=]{20,}+)*+"

_SHAPES = (
    # Specific before general: a later pattern would match the earlier ones' keys, too.
    _shape("anthropic_key", ("sk-ant-",), _starts("sk-ant-") + r"[A-Za-z0-9_-]{16,}"),
    _shape("openrouter_key", ("sk-or-",), _starts("sk-or-") + r"[A-Za-z0-9_-]{16,}"),
    _shape(
        "openai_key",
        ("sk-",),
        _starts("sk-")
        + r"(?:(?:proj|svcacct|admin|None)-[A-Za-z0-9_-]{16,}"
        + r"|(?=[A-Za-z]*[0-9])[A-Za-z0-9]{20,}|[A-Za-z0-9]{40,})(?![A-Za-z0-9])",
    ),
    _shape(
        "stripe_key",
        ("k_live_", "k_test_"),
        _word("[sr]k_(?:live|test)_") + r"[A-Za-z0-9]{10,}",
    ),
    _shape("stripe_secret", ("whsec_",), _starts("whsec_") + r"[A-Za-z0-9+/=]{16,}"),
    _shape("github_token", ("github_pat_",), _starts("github_pat_") + r"[A-Za-z0-9_]{22,}"),
    _shape(
        "github_token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_"),
        _word("gh[opusr]_") + r"[A-Za-z0-9]{30,}",
    ),
    _shape("gitlab_token", ("glpat-",), _starts("glpat-") + r"[A-Za-z0-9_.-]{20,}"),
    _shape(
        "aws_access_key",
        ("AKIA", "ASIA"),
        _word("A(?:KIA|SIA)") + r"[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    _shape(
        "aws_secret_key",
        ("secret_access_key", "SECRET_ACCESS_KEY", "SecretAccessKey", "secretAccessKey"),
        r"((?i:secret_?access_?key)[\\\"']{0,4}\s*[=:]\s*[\\\"']{0,4})[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+])",
        "prefix",
    ),
    _shape(
        "slack_token", ("xox",), _starts("xox[abceoprs]-") + r"(?=[A-Za-z-]*[0-9])[A-Za-z0-9-]{10,}"
    ),
    _shape("slack_token", ("xapp-",), _starts("xapp-[0-9]-") + r"[A-Za-z0-9-]{10,}"),
    _shape(
        "slack_webhook",
        ("hooks.slack",),
        r"(hooks\.slack(?:-gov)?\.com/(?:services|workflows|triggers)/)[A-Za-z0-9/_-]{16,}",
        "prefix",
    ),
    _shape(
        "openssh_private_key",
        ("BEGIN OPENSSH PRIVATE KEY",),
        rf"-----BEGIN OPENSSH PRIVATE KEY-----(?:{_ARMOUR}-----END OPENSSH PRIVATE KEY-----|{_LINES})",
    ),
    _shape(
        "private_key",
        ("PRIVATE KEY",),
        rf"-----BEGIN (?:[A-Z0-9]+ )*?PRIVATE KEY(?: BLOCK)?-----"
        # Without an END the block was cut off: what is there of it goes.
        rf"(?:{_ARMOUR}-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----|{_LINES})",
    ),
    _shape("sendgrid_key", ("SG.",), _starts(r"SG\.") + r"[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}"),
    _shape("google_api_key", ("AIza",), _word("AIza") + r"[A-Za-z0-9_-]{30,}"),
    _shape("npm_token", ("npm_",), _word("npm_") + r"[A-Za-z0-9]{30,}"),
    _shape("pypi_token", ("pypi-Ag",), _starts("pypi-Ag") + r"[A-Za-z0-9_-]{30,}"),
    _shape("huggingface_token", ("hf_",), _word("hf_") + r"[A-Za-z0-9]{30,}"),
    _shape("groq_key", ("gsk_",), _word("gsk_") + r"[A-Za-z0-9]{40,}"),
    _shape(
        "json_web_token",
        ("eyJ",),
        _starts("eyJ") + r"[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{4,}\.[A-Za-z0-9_-]{16,}",
    ),
    # Any other credential, by the scheme in front of it; a digit tells a token from a sentence.
    _shape(
        "bearer_token",
        ("Bearer", "bearer", "BEARER"),
        r"((?i:bearer)(?:(?<![A-Za-z0-9](?i:bearer))|(?<=\\[nrt](?i:bearer)))\s+)(?=[A-Za-z._~+/=-]*[0-9])[A-Za-z0-9._~+/=-]{16,}",
        "prefix",
    ),
)

NEEDLES = tuple(needle for shape in _SHAPES for needle in shape.needles)
"""One of these is in every credential whose shape is known."""

_STRING = re.compile(r'"(?:[^"\\]++|\\.)*+"', re.DOTALL)


class Redactor:
    """Replaces secrets in text. One instance serves a process; it may be used from any thread.

    `secrets` are exact values to hide (at least `MIN_SECRET_LENGTH` characters; shorter ones, and
    the dummy keys that local servers are given, are ignored).
    """

    def __init__(self, secrets: Iterable[str] = ()) -> None:
        self._exact: tuple[str, ...] = ()
        self._adding = threading.Lock()
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Hide `secret` from now on, as it is and as JSON, JSON within JSON, and HTML write it. Whatever
        uses this redactor already, a stream or a filter, hides it from then on, too."""
        secret = secret.strip()
        if len(secret) < MIN_SECRET_LENGTH or secret.lower() in _NOT_SECRETS:
            return
        forms = _forms(secret)
        with self._adding:  # of two threads that add at once none takes the other's away
            # Longest first: one secret may be the beginning of another.
            self._exact = tuple(sorted({*self._exact, *forms}, key=lambda s: (-len(s), s)))

    @property
    def exact(self) -> tuple[str, ...]:
        """The values that are hidden wherever they stand, longest first."""
        return self._exact

    def text(self, text: str) -> str:
        """`text` with every secret replaced by a placeholder such as ``[redacted:openai_key]``."""
        for secret in self._exact:
            if secret in text:
                text = text.replace(secret, f"{PLACEHOLDER}secret]")
        if _SUSPECT.search(text) is None:
            return text
        for shape in _SHAPES:
            text = shape.hide(text)
        return text

    def json_text(self, document: str) -> str:
        """The same for a serialised JSON document, which stays valid: only strings change.

        A number that is a secret is not hidden; credentials are strings.
        """
        if not self._suspects(document):
            return document
        return _STRING.sub(self._literal, document)

    def _suspects(self, text: str) -> bool:
        return _SUSPECT.search(text) is not None or any(s in text for s in self._exact)

    def _literal(self, match: re.Match[str]) -> str:
        literal = match.group()
        if len(literal) < MIN_SECRET_LENGTH or not self._suspects(literal):
            return literal
        try:
            value = json.loads(literal, strict=False)
        except ValueError:
            return json.dumps(self.text(literal[1:-1]), ensure_ascii=False)
        clean = self.text(value)
        return literal if clean == value else json.dumps(clean, ensure_ascii=False)


def _forms(secret: str) -> set[str]:
    """A secret as texts may hold it. For most there is only one form.

    HTML, with quotes escaped or not, is how texts of others are framed; the frame is itself written as
    JSON, and may hold JSON.
    """
    plain = {secret}
    for ascii_only in (True, False):
        once = _in_json(secret, ascii_only=ascii_only)
        plain |= {once, _in_json(once, ascii_only=ascii_only)}
    framed = {escape(form, quote=quote) for form in plain for quote in (True, False)}
    return (
        plain | framed | {_in_json(f, ascii_only=a) for f in framed - plain for a in (True, False)}
    )


def _in_json(secret: str, *, ascii_only: bool) -> str:
    return json.dumps(secret, ensure_ascii=ascii_only)[1:-1]


class RedactingFilter(logging.Filter):
    """Redacts log records: message, arguments, traceback. Add it to handlers.

    (A filter on a logger sees only what is logged to that very logger, not to its children.)
    """

    def __init__(self, redactor: Redactor) -> None:
        super().__init__()
        self._redactor = redactor
        self._formatter = logging.Formatter()

    def filter(self, record: logging.LogRecord) -> bool:
        try:
            message = record.getMessage()
        except Exception as fault:  # a wrong format string must not cost the line, nor its secrets
            message = f"{record.msg!r} with {record.args!r} (could not be formatted: {fault})"
        record.msg, record.args = self._redactor.text(message), ()
        if record.exc_info:
            record.exc_text = record.exc_text or self._formatter.formatException(record.exc_info)
            record.exc_info = None
        if record.exc_text:
            record.exc_text = self._redactor.text(record.exc_text)
        if record.stack_info:
            record.stack_info = self._redactor.text(record.stack_info)
        return True
