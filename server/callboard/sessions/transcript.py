"""What of a session's log is context, and as what: the events in, model messages out. Pure.

A person's message stands where an ``ack`` admitted it, not where it arrived, so that a prompt that
came while the agent was busy follows the answer that it interrupted. A summary stands for all up to
its `covers_through` (session-messaging 4). Tool traffic is replayed or left out, as the session has it.
What wakes an agent by the clock is context of its own turn alone; in a room, what other members say is
said to the one that runs.
"""

from collections.abc import Sequence
from html import escape
from typing import Any, Final, Literal, TypeAlias, TypeGuard

import attrs
from attrs import define, field

from callboard_rpc.common import (
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    Thinking,
)
from callboard_rpc.common import (
    ToolUse as ToolUseRef,
)
from callboard_rpc.events import (
    Ack,
    Directive,
    Message,
    PromptUpdated,
    ScheduleFired,
    Summary,
    ToolCall,
    ToolResult,
)

from ..log.record import Record
from ..models.base import (
    AssistantMessage,
    Image,
    ModelMessage,
    Reasoning,
    Text,
    ToolMessage,
    ToolOutput,
    ToolUse,
    UserMessage,
)
from .rewound import living

ToolContextMode: TypeAlias = Literal["replay", "audit"]

Said: TypeAlias = Message | Directive | Summary | ScheduleFired
"""What is said to an agent."""

SPOKEN_TYPES: Final = frozenset(
    [
        "message",
        "directive",
        "schedule_fired",
        "ack",
        "summary",
        "prompt_updated",
        "session_rewound",
    ]
)
"""Types of what is said, and of what has a say in where it stands."""

SUMMARY_INTRODUCTION = "Summary of the conversation so far:\n\n"


@define(kw_only=True)
class _Said:
    """Something in user role, in the place `pos` (a seq)."""

    pos: int
    record: Record
    value: "Said"
    turn_id: str | None = None
    """The only turn that it is for."""
    made: UserMessage | None = None
    """What became of it, until it changes: a step need not make the whole past anew."""


@define(kw_only=True)
class _Answered:
    """One answer of the model: its message, if it said anything, and its calls with their results."""

    pos: int
    message_id: str
    first: Record
    """Of its records the first: who has written it is who speaks, also where nothing is said but calls."""
    turn_id: str | None
    record: Record | None = None
    message: Message | None = None
    calls: list[ToolCall] = field(factory=list[ToolCall])
    results: dict[str, ToolResult] = field(factory=dict[str, ToolResult])
    made: dict[tuple[bool, bool], list[ModelMessage]] = field(
        factory=dict[tuple[bool, bool], list[ModelMessage]]
    )
    """What became of it, with its calls or without, as one's own or another's, until it changes."""

    _by: str | None = None

    @property
    def speaker(self) -> str | None:
        """The agent whose answer it is; None where an old log does not say."""
        if self.message is not None:
            return self.message.author.name
        if self._by is None:
            self._by = self.first.by.name
        return self._by


_Entry: TypeAlias = _Said | _Answered


class Transcript:
    """Follows one session's log. Give it every record, in order of seq; but when the session is
    rewound, make a new one `of` all. Without `calls` it has only what was said."""

    def __init__(self, *, calls: bool = True) -> None:
        self.seq = 0
        self._calls = calls
        self._entries: list[_Entry] = []
        self._held: dict[int, Record] = {}
        self._updates: dict[int, Record] = {}
        self._answers: dict[str, _Answered] = {}
        self._by_call: dict[str, _Answered] = {}
        self.large: list[Record] = []
        """Records whose texts are cut; `complete` brings the whole."""
        self._made: dict[
            tuple[ToolContextMode, str | None, str | None], tuple[ModelMessage, ...]
        ] = {}

    @classmethod
    def of(cls, records: Sequence[Record], *, calls: bool = True) -> "Transcript":
        """From all records of a session so far: what was rewound is left out."""
        transcript = cls(calls=calls)
        for record in living(records):
            transcript.apply(record)
        transcript.seq = records[-1].seq if records else 0
        return transcript

    def apply(self, record: Record) -> None:
        """Takes in the next record."""
        self.seq = record.seq
        if not self._calls and record.type not in SPOKEN_TYPES:
            return
        self._made.clear()
        match record.type:
            case "message":
                self._message(record)
            case "directive" | "schedule_fired":
                self._held[record.seq] = record
            case "ack":
                self._admit(record)
            case "tool_call":
                self._call(record)
            case "tool_result":
                result: ToolResult = record.value
                answer = self._by_call.get(result.call_id)
                if answer is not None:
                    answer.results[result.call_id] = result
                    answer.made.clear()
            case "summary":
                self._summarise(record)
            case "prompt_updated":
                self._update(record, record.value)
            case _:
                return
        if '"_blobs"' in record.data:
            self.large.append(record)

    def _message(self, record: Record) -> None:
        message: Message = record.value
        if message.from_outside:
            self._held[record.seq] = record
            return
        answer = self._answer(message.message_id, record)
        answer.message, answer.record = message, record
        answer.made.clear()

    def _update(self, record: Record, update: PromptUpdated) -> None:
        """A prompt that waits says something else now; one that was taken in cannot change."""
        held = self._held.get(update.seq)
        if held is not None:
            self._updates[update.seq] = record
            self._held[update.seq] = _with_value(
                held, attrs.evolve(held.value, content=update.content)
            )

    def _answer(self, message_id: str, record: Record) -> _Answered:
        answer = self._answers.get(message_id)
        if answer is None:
            answer = self._answers[message_id] = _Answered(
                pos=record.seq, message_id=message_id, first=record, turn_id=record.turn_id
            )
            self._entries.append(answer)
        return answer

    def _call(self, record: Record) -> None:
        call: ToolCall = record.value
        answer = self._answer(call.message_id, record)
        answer.calls.append(call)
        answer.made.clear()
        self._by_call[call.call_id] = answer

    def _admit(self, record: Record) -> None:
        ack: Ack = record.value
        for seq in ack.admits:
            held = self._held.pop(seq, None)
            if held is not None:
                only = record.turn_id if held.type == "schedule_fired" else None
                self._entries.append(
                    _Said(pos=record.seq, record=held, value=held.value, turn_id=only)
                )

    def _summarise(self, record: Record) -> None:
        summary: Summary = record.value
        kept = [entry for entry in self._entries if entry.pos > summary.covers_through]
        self._entries = [_Said(pos=record.seq, record=record, value=summary), *kept]
        alive = {id(entry) for entry in kept}
        self._answers = {k: a for k, a in self._answers.items() if id(a) in alive}
        self._by_call = {k: a for k, a in self._by_call.items() if id(a) in alive}

    def complete(self, record: Record, value: Any) -> None:
        """Puts the whole value of a `large` record in place."""
        self._made.clear()
        if isinstance(value, PromptUpdated):
            self._complete_update(record, value)
            return
        for entry in self._entries:
            if isinstance(entry, _Said):
                if entry.record is record and isinstance(
                    value, Message | Directive | Summary | ScheduleFired
                ):
                    entry.value, entry.made = value, None
                continue
            entry.made.clear()
            if entry.record is record and isinstance(value, Message):
                entry.message = value
            elif isinstance(value, ToolCall):
                entry.calls = [value if c.call_id == value.call_id else c for c in entry.calls]
            elif isinstance(value, ToolResult) and value.call_id in entry.results:
                entry.results[value.call_id] = value
        held = self._held.get(record.seq)
        if held is record:
            self._held[record.seq] = _with_value(record, value)

    def _complete_update(self, record: Record, update: PromptUpdated) -> None:
        if self._updates.get(update.seq) is not record:
            return  # it was changed once more
        held = self._held.get(update.seq)
        if held is not None:
            whole = attrs.evolve(held.value, content=update.content)
            self._held[update.seq] = _with_value(held, whole)
        for entry in self._entries:
            if (
                isinstance(entry, _Said)
                and entry.record.seq == update.seq
                and isinstance(entry.value, Message)
            ):
                entry.value = attrs.evolve(entry.value, content=update.content)
                entry.made = None

    def said_since(self, seq: int, *, turn_id: str, speaker: str | None) -> "list[Said | str]":
        """What was said to an agent after `seq`, in order, for one that remembers what came before: values as
        they are, and what other members have said in their frame. Its own words are not among them."""
        out: list[Said | str] = []
        for entry in self._entries:
            if entry.pos <= seq:
                continue
            match entry:
                case _Said(turn_id=only) if only is not None and only != turn_id:
                    pass  # it was for another turn
                case _Said(value=value):
                    out.append(value)
                case _Answered() if speaker is not None and entry.speaker not in (None, speaker):
                    out.extend(
                        b.text for m in _heard(entry) for b in m.blocks if isinstance(b, Text)
                    )
                case _:
                    pass
        return out

    def last_said(self, *, speaker: str | None) -> int:
        """The place of the newest thing that was said to an agent; 0 when nothing was."""
        for entry in reversed(self._entries):
            other = speaker is not None and isinstance(entry, _Answered)
            if isinstance(entry, _Said) or (other and entry.speaker not in (None, speaker)):
                return entry.pos
        return 0

    def spoken_through(self, seq: int, *, speaker: str | None) -> list[tuple[str, str]]:
        """What was said up to `seq`, and all that the agent `speaker` has said itself: by whom (blank for those whom
        the agents work for) and as text, for one that has lost what it knew."""
        out: list[tuple[str, str]] = []
        for entry in self._entries:
            own = isinstance(entry, _Answered) and (
                speaker is None or entry.speaker in (None, speaker)
            )
            if entry.pos > seq and not own:
                continue
            match entry:
                case _Said(turn_id=None, value=value):
                    blocks = _user_blocks(value)
                    out.append(("", "\n".join(b.text for b in blocks if isinstance(b, Text))))
                case _Answered(message=Message(content=content)):
                    texts = [b.text for b in content if isinstance(b, TextContent)]
                    out.append((entry.speaker or "agent", "\n\n".join(texts)))
                case _:
                    pass
        return [(who, text) for who, text in out if text.strip()]

    @property
    def length(self) -> int:
        """How many entries are context by themselves: messages, directives and summaries."""
        return sum(1 for entry in self._entries if _counts(entry))

    def last_requests(self, limit: int = 3) -> list[str]:
        """The newest texts in context of those whom the agent works for, oldest first: persons, and those above
        it. What its own agents, its siblings, linked sessions and others tell it has no place among them
        (interrupts-and-peers 54)."""
        texts: list[str] = []
        for entry in reversed(self._entries):
            if isinstance(entry, _Said) and _asks(entry.value):
                texts.append(
                    "\n".join(b.text for b in _user_blocks(entry.value) if isinstance(b, Text))
                )
                if len(texts) == limit:
                    break
        return texts[::-1]

    @property
    def summary(self) -> Text | None:
        """The block that stands for all that is behind the boundary. Nothing replaces it."""
        first = self._entries[0] if self._entries else None
        if isinstance(first, _Said) and isinstance(first.value, Summary):
            return _summary_block(first.value)
        return None

    def messages(
        self, tools: ToolContextMode, *, turn_id: str | None = None, speaker: str | None = None
    ) -> tuple[ModelMessage, ...]:
        """The context in order. Begins with a user message; consecutive ones are joined.

        With ``audit``, tool traffic is that of the turn `turn_id` alone: a model that did not see
        its own results would ask for them for ever. `speaker` is the agent that reads it: what others have
        said is user role, by their names, and of what they did nothing (DESIGN 6). Between two records the
        answer is one and the same object.
        """
        made = self._made.get((tools, turn_id, speaker))
        if made is None:
            made = self._made[tools, turn_id, speaker] = self._make(tools, turn_id, speaker)
        return made

    def _make(
        self, tools: ToolContextMode, turn_id: str | None, speaker: str | None
    ) -> tuple[ModelMessage, ...]:
        out: list[ModelMessage] = []
        for entry in self._entries:
            match entry:
                case _Said(turn_id=only) if only is not None and only != turn_id:
                    pass  # it was for another turn
                case _Said():
                    said = entry.made
                    if said is None:
                        said = entry.made = UserMessage(blocks=_user_blocks(entry.value))
                    _add_user(out, said)
                case _Answered():
                    own = turn_id is not None and entry.turn_id == turn_id
                    other = not own and speaker is not None and entry.speaker not in (None, speaker)
                    whole = own or (tools == "replay" and not other)
                    made = entry.made.get((whole, other))
                    if made is None:
                        made = entry.made[whole, other] = (
                            [*_heard(entry)] if other else _answer_messages(entry, whole=whole)
                        )
                    for each in made:
                        if isinstance(each, UserMessage):
                            _add_user(out, each)
                        else:
                            out.append(each)
        while out and not isinstance(out[0], UserMessage):
            out.insert(0, UserMessage(blocks=(Text(text="(The conversation goes on.)"),)))
        return tuple(out)


def _counts(entry: _Entry) -> bool:
    match entry:
        case _Said(turn_id=only):
            return only is None
        case _Answered(message=message):
            return message is not None and _spoken(message)


def _add_user(out: list[ModelMessage], message: UserMessage) -> None:
    """Joins what is said to the agent in one go."""
    if out and isinstance(last := out[-1], UserMessage):
        out[-1] = UserMessage(blocks=(*last.blocks, *message.blocks))
    else:
        out.append(message)


def _heard(entry: _Answered) -> list[UserMessage]:
    """What another member has said: its words and nothing of how it came to them."""
    if entry.message is None:
        return []
    texts = [b.text for b in entry.message.content if isinstance(b, TextContent) and b.text.strip()]
    if not texts:
        return []
    name = escape(entry.message.author.name)
    body = escape("\n\n".join(texts), quote=False)
    return [UserMessage(blocks=(Text(text=f'<member name="{name}">\n{body}\n</member>'),))]


def _with_value(record: Record, value: Any) -> Record:
    return Record(
        pos=record.pos, session_id=record.session_id, seq=record.seq, event_id=record.event_id,
        type=record.type, at=record.at, actor=record.actor, turn_id=record.turn_id,
        fence=record.fence, data=record.data, value=value, root_id=record.root_id,
    )  # fmt: skip


def _spoken(message: Message) -> bool:
    return any(isinstance(b, TextContent) and b.text.strip() for b in message.content)


_ASKING = frozenset({"directive", "mention", "schedule", "continue", "information"})
"""Deliveries of somebody whom the agent works for."""


def _asks(value: Message | Directive | Summary | ScheduleFired) -> TypeGuard[Message | Directive]:
    """Whether this is a word of somebody whom the agent works for."""
    match value:
        case Message(delivered=None, author=author):
            return author.kind != "peer"
        case Message(delivered=delivered, joined=joined):
            return any(each is not None and each.kind in _ASKING for each in (delivered, *joined))
        case Directive():
            return value.author.kind != "system" and not value.is_group_message
        case Summary() | ScheduleFired():
            return False


def _user_blocks(value: Message | Directive | Summary | ScheduleFired) -> tuple[Text | Image, ...]:
    match value:
        case ScheduleFired(prompt=prompt):
            return (Text(text=prompt),)
        case Summary():
            return (_summary_block(value),)
        case Directive(text=text, context=context):
            return (Text(text=f"{text}\n\nContext: {context}" if context else text),)
        case Message(content=content):
            return tuple(block for b in content if (block := _user_block(b)) is not None)


def _summary_block(summary: Summary) -> Text:
    return Text(text=SUMMARY_INTRODUCTION + summary.text)


def _user_block(block: Any) -> Text | Image | None:
    match block:
        case TextContent(text=text):
            return Text(text=text)
        case ImageContent(data=data, mime_type=mime_type):
            return Image(data=data, mime_type=mime_type)
        case ResourceLink(uri=uri, name=name):
            return Text(text=f"[{name or uri}]({uri})")
        case EmbeddedResource(uri=uri, text=text):
            return Text(text=f'<resource uri="{escape(uri)}">\n{text}\n</resource>')
        case _:
            return None


def _answer_messages(entry: _Answered, *, whole: bool) -> list[ModelMessage]:
    # calls without a result cannot be sent (coordination 11); they can only be a crash's leftovers
    calls = {c.call_id: c for c in entry.calls if whole and c.call_id in entry.results}
    blocks: list[Text | Reasoning | ToolUse] = []
    placed: set[str] = set()
    for block in entry.message.content if entry.message else ():
        match block:
            case TextContent(text=text) if text.strip():
                blocks.append(Text(text=text))
            case Thinking(text=text, provider=provider, opaque=opaque) if whole:
                blocks.append(Reasoning(text=text, provider=provider, opaque=opaque))
            case ToolUseRef(call_id=call_id) if call_id in calls:
                blocks.append(_tool_use(calls[call_id]))
                placed.add(call_id)
            case _:
                pass
    blocks += [_tool_use(call) for call_id, call in calls.items() if call_id not in placed]
    if not any(not isinstance(block, Reasoning) for block in blocks):
        return []
    out: list[ModelMessage] = [AssistantMessage(blocks=tuple(blocks))]
    if calls:
        order = [b.call_id for b in blocks if isinstance(b, ToolUse)]
        out.append(ToolMessage(outputs=tuple(_output(entry.results[c]) for c in order)))
    return out


def _tool_use(call: ToolCall) -> ToolUse:
    arguments = call.arguments
    if call.raw_arguments is not None:
        arguments = {"_not_json": call.raw_arguments[:2_000]}
    return ToolUse(call_id=call.call_id, name=call.name, arguments=arguments)


def _output(result: ToolResult) -> ToolOutput:
    return ToolOutput(call_id=result.call_id, text=result.text, is_error=result.status != "ok")
