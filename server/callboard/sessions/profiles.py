"""Agent definitions: Markdown files with front matter, and the one that is built in (PROTOCOL 7).

A file in ``agents/`` of the user's configuration directory defines an agent. One in
``.callboard/agents/`` of the workspace is untrusted: it can bring a prompt, and otherwise only take
away from the user's agent of the same name, or from `default` where there is none.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

import attrs
from attrs import field, frozen

from callboard_rpc.common import Effort, Limits, Mode
from callboard_rpc.errors import CallboardError
from callboard_rpc.profiles import ProfileStatus
from callboard_rpc.server import ProfileInfo

from .default_prompt import PROMPT
from .profile_fields import READERS, ProfileFault, front_matter

DEFAULT: Final = "default"
MAX_FILE_BYTES: Final = 256 * 1024
MAX_FILES: Final = 500

Origin: TypeAlias = Literal["builtin", "user", "workspace"]
ContextTools: TypeAlias = Literal["replay", "audit"]

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FRONT_MATTER = re.compile(
    r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE
)


def is_name(text: str) -> bool:
    """Whether an agent can be called so."""
    return _NAME.fullmatch(text) is not None


@frozen(kw_only=True)
class Profile:
    """An agent definition. `tools` None means every tool, `mode` and `model` None the session's default.

    `error` says why a file cannot be used: such a profile is listed, never run.
    """

    name: str
    description: str
    prompt: str
    source: Origin
    path: str | None = None
    kind: Literal["builtin", "acp"] = "builtin"
    command: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict[str, str])
    inherit_env: bool = True
    """Whether an agent of kind acp has what the server has; else little more than `env`."""
    model: str | None = None
    mode: Mode | None = None
    effort: Effort | None = None
    tools: tuple[str, ...] | None = None
    limits: Limits | None = None
    context_tools: ContextTools | None = None
    text_tool_calls: bool = False
    error: str | None = None

    def info(self) -> ProfileInfo:
        """What ``profile/list`` tells; a broken profile's description is its error."""
        return ProfileInfo(
            name=self.name,
            description=self.description if self.error is None else f"cannot be used: {self.error}",
            source=self.source,
            kind=self.kind,
            model=self.model,
            mode=self.mode,
            tools=self.tools,
            path=self.path,
        )


BUILTIN: Final = Profile(
    name=DEFAULT,
    description="A coding agent with every tool.",
    prompt=PROMPT,
    source="builtin",
)


@frozen
class ProfileBook:
    """The profiles that a session in one folder can use, by name."""

    profiles: Mapping[str, Profile] = field(factory=dict[str, Profile])
    warnings: tuple[str, ...] = ()
    absent: Mapping[str, str] = field(factory=dict[str, str])
    """Names that would be profiles here, and what is in the way."""

    @classmethod
    def load(cls, user_dir: Path, cwd: Path | None) -> "ProfileBook":
        """Read ``agents/*.md`` in `user_dir` and ``.callboard/agents/*.md`` below `cwd`. Never raises."""
        warnings: list[str] = []
        book: dict[str, Profile] = {DEFAULT: BUILTIN}
        for profile in _read_folder(user_dir / "agents", "user", None, warnings):
            _add(book, profile, warnings)
        trusted = dict(book)
        if cwd is not None:
            found = _read_folder(cwd / ".callboard" / "agents", "workspace", cwd, warnings)
            for profile in found:
                base = trusted.get(profile.name, trusted[DEFAULT])
                if profile.error is not None and profile.name in trusted:
                    warnings.append(f"{profile.path}: {profile.error}")
                    continue  # a broken file must not take the user's own agent away
                _add(book, profile if profile.error else _narrowed(profile, base), warnings)
        return cls(book, tuple(warnings))

    @staticmethod
    def sources(user_dir: Path, cwd: Path) -> tuple[Path, Path]:
        """The folders whose files `load` reads, there or not."""
        return user_dir / "agents", cwd / ".callboard" / "agents"

    def get(self, name: str) -> Profile:
        """The profile called `name`. Raises `CallboardError` profileNotFound, which lists the names."""
        profile = self.profiles.get(name)
        usable = ", ".join(sorted(p.name for p in self.profiles.values() if p.error is None))
        if profile is None:
            why = f": {self.absent[name]}" if name in self.absent else ""
            raise CallboardError(
                "profileNotFound", f"there is no profile {name!r}{why}; there are: {usable}"
            )
        if profile.error is not None:
            raise CallboardError(
                "profileNotFound",
                f"the profile {name!r} cannot be used: {profile.path}: {profile.error}; "
                f"mend it, or use one of: {usable}",
            )
        return profile

    def infos(
        self, standing: Callable[[Profile], ProfileStatus] | None = None
    ) -> tuple[ProfileInfo, ...]:
        """All profiles, `default` first, then by name; those with an error are among them. `standing` tells how one
        stands that is a program of its own."""
        ordered = sorted(self.profiles.values(), key=lambda p: (p.name != DEFAULT, p.name))
        if standing is None:
            return tuple(profile.info() for profile in ordered)
        return tuple(
            attrs.evolve(each.info(), status=standing(each))
            if each.kind == "acp" and each.error is None
            else each.info()
            for each in ordered
        )


def _add(book: dict[str, Profile], profile: Profile, warnings: list[str]) -> None:
    there = book.get(profile.name)
    if there is not None and there.source == profile.source:
        warnings.append(
            f"{profile.path}: {there.path} already defines {profile.name!r}; it is ignored"
        )
        return
    if there is not None and profile.error is not None:
        warnings.append(f"{profile.path}: {profile.error}")
        return
    book[profile.name] = profile


# --- reading ------------------------------------------------------------------------------------------


def _read_folder(
    folder: Path, source: Origin, within: Path | None, warnings: list[str]
) -> Iterable[Profile]:
    try:
        paths = sorted(
            p for p in folder.iterdir() if p.suffix == ".md" and not p.name.startswith(".")
        )
    except OSError:
        return
    if len(paths) > MAX_FILES:
        warnings.append(f"{folder}: holds more than {MAX_FILES} files; the rest is ignored")
    for path in paths[:MAX_FILES]:
        name = path.stem
        try:
            yield parse(_read(path, within), name, source, str(path))
        except ProfileFault as fault:
            yield Profile(
                name=name,
                description="",
                prompt="",
                source=source,
                path=str(path),
                error=str(fault),
            )


def _read(path: Path, within: Path | None) -> str:
    try:
        if within is not None and not path.resolve().is_relative_to(within.resolve()):
            raise ProfileFault("is a link to outside of the workspace")
        if not path.is_file():
            raise ProfileFault("is not a file")
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except (OSError, RuntimeError) as fault:
        raise ProfileFault(f"cannot be read: {getattr(fault, 'strerror', None) or fault}") from None
    if len(data) > MAX_FILE_BYTES:
        raise ProfileFault(f"is larger than {MAX_FILE_BYTES} bytes")
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise ProfileFault("is not UTF-8") from None


def parse(text: str, name: str, source: Origin, path: str | None = None) -> Profile:
    """The profile in a file's `text`; `name` is what it is called unless it says so itself.

    Raises `ProfileFault`, which names the field.
    """
    front = _FRONT_MATTER.match(text)
    if front is None and text.startswith("---\n"):
        raise ProfileFault("the front matter has no end: a line with --- after it")
    fields = front_matter(front[1]) if front is not None else {}
    prompt = (text[front.end() :] if front is not None else text).strip()
    if source == "workspace":
        for forbidden in ("command", "env", "inherit_env"):
            if forbidden in fields:
                raise ProfileFault(f"{forbidden}: a workspace may not name commands")
        if fields.get("kind") == "acp":
            raise ProfileFault("kind: a workspace may not define agents of kind acp")
    values: dict[str, Any] = {"name": name, "description": ""}
    for key, value in fields.items():
        reader = READERS.get(key)
        if reader is None:
            raise ProfileFault(f"{key}: is no field; there are {', '.join(READERS)}")
        if value is not None:
            try:
                values.update(reader(value))
            except ProfileFault as fault:
                raise ProfileFault(f"{key}: {fault}") from None
    return _complete(Profile(**values, prompt=prompt, source=source, path=path))


def _complete(profile: Profile) -> Profile:
    if not is_name(profile.name):
        raise ProfileFault(
            "name: expected up to 64 letters, digits, '_', '.' and '-', the first a letter or a "
            f"digit; found {profile.name!r}"
        )
    if profile.kind == "acp" and not profile.command:
        raise ProfileFault("command: an agent of kind acp needs the command that starts it")
    if profile.command and profile.kind != "acp":
        raise ProfileFault("command: only an agent of kind acp has a command; add kind: acp")
    if not profile.inherit_env and profile.kind != "acp":
        raise ProfileFault(
            "inherit_env: only an agent of kind acp has an environment; add kind: acp"
        )
    if profile.env and profile.kind != "acp":
        raise ProfileFault("env: only an agent of kind acp has an environment; add kind: acp")
    if profile.kind == "acp" and (profile.tools is not None or profile.model is not None):
        raise ProfileFault("tools, model: an agent of kind acp has its own; leave them out")
    if profile.description:
        return profile
    first = next(
        (line.strip("# \t") for line in profile.prompt.splitlines() if line.strip("# \t")), ""
    )
    return attrs.evolve(profile, description=first[:200])


# --- narrowing ----------------------------------------------------------------------------------------


def _narrowed(profile: Profile, base: Profile) -> Profile:
    """A workspace's profile, held to what the user's `base` may do."""
    if base.kind == "acp":
        error = f"kind: {base.name!r} is an agent of kind acp of yours, which a workspace may not change"
        return attrs.evolve(profile, error=error)
    return attrs.evolve(
        profile,
        prompt=profile.prompt or base.prompt,
        model=profile.model or base.model,
        mode=_narrower_mode(profile.mode, base.mode),
        effort=profile.effort or base.effort,
        tools=_common(profile.tools, base.tools),
        limits=_lower(profile.limits, base.limits),
        context_tools=profile.context_tools or base.context_tools,
    )


def _narrower_mode(mode: Mode | None, base: Mode | None) -> Mode | None:
    """``work`` takes nothing away, so it counts as not given."""
    return base if mode in (None, "work") else mode


def _common(tools: tuple[str, ...] | None, base: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if tools is None or base is None:
        return base if tools is None else tools
    return tuple(name for name in tools if name in base)


def _lower(limits: Limits | None, base: Limits | None) -> Limits | None:
    if limits is None or base is None:
        return limits or base

    def least(a: Any, b: Any) -> Any:
        return b if a is None else a if b is None else min(a, b)

    return Limits(
        turns=least(limits.turns, base.turns),
        tokens=least(limits.tokens, base.tokens),
        cost=least(limits.cost, base.cost),
        timeout_ms=least(limits.timeout_ms, base.timeout_ms),
    )
