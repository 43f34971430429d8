"""What an agent asks of the person with ``elicitation/create``, as it is shown and answered. Pure."""

from typing import Any, Final, TypeAlias
from urllib.parse import urlsplit

from attrs import frozen

from callboard_rpc.approvals import (
    ApprovalOption,
    FormSubject,
    OptionKind,
    Resolution,
    Subject,
    ToolCallSubject,
)
from callboard_rpc.common import Json

from ...tools.base import Preview, Tool, ToolContext, ToolFailure, ToolOutcome
from ...tools.display import one_line, printable, well_formed
from ..contract.services import CreateElicitationRequest
from .forms import Form, Unfit, content_of, form_of

NAME: Final = "ask"
"""What such a question is called in the log."""
_MESSAGE_CHARS = 16_000
_URL_CHARS = 2_000
_ID_CHARS = 1_024
_TITLE_CHARS = 200

Content: TypeAlias = dict[str, Any]


@frozen(kw_only=True)
class Question:
    """`form` is to be filled in, or `url` to be gone to; `values` are what options of a choice stand for."""

    message: str
    form: Form | None = None
    url: str | None = None
    elicitation_id: str | None = None
    values: tuple[Any, ...] = ()
    options: tuple[ApprovalOption, ...] = ()

    @property
    def arguments(self) -> Json:
        """What the log has of it."""
        return {"message": self.message} if self.url is None else {
            "message": self.message,
            "url": self.url,
        }  # fmt: skip

    def preview(self, misfit: str | None = None) -> Preview:
        """What a person is shown; `misfit` says what was wrong with the answer before."""
        message = f"{misfit}\n\n{self.message}" if misfit else self.message
        subject: Subject
        if self.form is not None and not self.values:
            subject = FormSubject(message=message, schema=self.form.schema)
        else:
            subject = ToolCallSubject(name=NAME, arguments={**self.arguments, "message": message})
        title = one_line(self.message, _TITLE_CHARS) or "The agent asks"
        return Preview(title=title, subject=subject, risk="low" if self.url is None else "medium")

    def content(self, how: Resolution) -> Content | None:
        """What an answer that accepts comes to. Raises `Unfit`."""
        if self.form is None:
            return None
        if not self.values:
            return content_of(self.form, how.feedback)
        for option, value in zip(self.options, self.values, strict=False):
            if option.option_id == how.option_id:
                return {self.form.fields[0].name: value}
        raise Unfit("Choose one of the answers.")


def question_of(request: CreateElicitationRequest) -> Question:
    """Raises `Unfit`."""
    message = printable(well_formed(request.message))
    if len(message) > _MESSAGE_CHARS:
        raise Unfit(f"message: is over {_MESSAGE_CHARS} characters")
    match request.mode:
        case "form":
            if request.requested_schema is None:
                raise Unfit("requestedSchema: is missing")
            return _of_form(message, form_of(request.requested_schema))
        case "url":
            wanted, url = request.elicitation_id, request.url
            if not wanted or len(wanted) > _ID_CHARS:
                raise Unfit(f"elicitationId: must have 1 to {_ID_CHARS} characters")
            if url is None:
                raise Unfit("url: is missing")
            return Question(
                message=message,
                url=_shown_url(url),
                elicitation_id=wanted,
                options=(_option("accept", "Accept", "allow_once"), _DECLINE),
            )
        case _:
            raise Unfit(f"mode: {one_line(str(request.mode), 80)!r} is not known here")


def _of_form(message: str, form: Form) -> Question:
    choice = form.choice
    if choice is None:
        answer = _option("accept", "Answer", "allow_once")
        return Question(message=message, form=form, options=(answer, _DECLINE))
    named: tuple[tuple[Any, str], ...] = choice.values or ((True, "Yes"), (False, "No"))
    options = [_option(f"answer_{at}", name, "allow_once") for at, (_, name) in enumerate(named, 1)]
    return Question(
        message=message,
        form=form,
        values=tuple(value for value, _ in named),
        options=(*options, _DECLINE),
    )


def _shown_url(url: str) -> str:
    """A URL that a person can judge by reading it. Raises `Unfit`."""
    if len(url) > _URL_CHARS:
        raise Unfit(f"url: is over {_URL_CHARS} characters")
    try:
        parts = urlsplit(url)
        known = parts.scheme in ("http", "https") and parts.hostname
        plain = parts.username is None and parts.password is None and parts.port != 0
    except ValueError:
        known = plain = False
    if (
        not known
        or not plain
        or not url.isascii()
        or not url.isprintable()
        or set(url) & set(' \\"<>')
    ):
        raise Unfit("url: must be a plain http or https URL, in ASCII, without a user's name")  # fmt: skip
    return url


def _option(option_id: str, name: str, kind: OptionKind) -> ApprovalOption:
    return ApprovalOption(option_id=option_id, name=name, kind=kind)


_DECLINE: Final = _option("decline", "Do not answer", "reject_once")


async def _runs_nothing(_: ToolContext, __: Any) -> ToolOutcome:
    raise ToolFailure("A question runs nothing.")


async def _shown_already(_: ToolContext, __: Any) -> Preview:
    raise ToolFailure("A question is shown as it was asked.")


TOOL: Final = Tool(
    name=NAME,
    description="",
    arguments=Question,
    effect="kernel",
    kind="other",
    run=_runs_nothing,
    preview=_shown_already,
)
