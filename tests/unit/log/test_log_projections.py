"""Nothing lives only in a projection: emptied and rebuilt from the log, every table is as it was."""

import asyncio
import contextlib
import tempfile
from pathlib import Path
from typing import Any

import log_agents
import pytest
from attrs import evolve
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from log_workbench import (
    AGENT,
    CLIENT,
    PROJECTIONS,
    begin,
    called,
    log_at,
    returned,
    said,
    session_in,
    tables,
    told,
)

from callboard.agents import projection as agents
from callboard.agents import state as agent_state
from callboard.approvals import service as approvals
from callboard.approvals import state as approval_state
from callboard.log.record import Record
from callboard.log.transaction import Transaction
from callboard.sessions import state as session_state
from callboard.turns.projection import SQL as TURN_SQL
from callboard_rpc.approvals import (
    Approval,
    ApprovalOption,
    Resolution,
    Rule,
    ToolCallSubject,
)
from callboard_rpc.common import ApprovalId, CallId, Failure, RuleId, SessionId, TurnId, Usage
from callboard_rpc.events import (
    Ack,
    AgentAsked,
    ApprovalDecision,
    ApprovalRequest,
    Author,
    CancelRequested,
    Delivered,
    DeliveriesDropped,
    Error,
    ModeChanged,
    ModelChanged,
    ModelRetried,
    PlanUpdated,
    SessionArchived,
    SessionClosed,
    SessionUnarchived,
    SessionUpdated,
    Summary,
    Trigger,
    TriggersDropped,
    TurnFinished,
    TurnParked,
    TurnStarted,
    UnknownData,
)

pytestmark = pytest.mark.anyio

_TEXT = st.sampled_from(["", "hello\nworld", "naïve 🙂", "x" * 70_000, "long " * 40])
_ENDS = st.sampled_from(["allowed", "rejected", "cancelled", "expired"])
_OUTCOMES = st.sampled_from(["completed", "failed", "cancelled", "interrupted", "timed_out"])


def _approval(session_id: str, approval_id: str, turn_id: str, call_id: str) -> Approval:
    return Approval(
        approval_id=ApprovalId(approval_id),
        session_id=SessionId(session_id),
        root_id=SessionId(session_id),
        turn_id=TurnId(turn_id),
        call_id=CallId(call_id),
        kind="permission",
        title="Run it",
        tool="shell",
        subject=ToolCallSubject(name="shell", arguments={"a": 1}),
        options=(ApprovalOption(option_id="allow_once", name="Allow", kind="allow_once"),),
        created_at="2031-01-01T00:00:00.000Z",
        expires_at="2031-01-01T00:01:00.000Z",
    )


class Store(RuleBasedStateMachine):
    """Random operations on a few sessions; what the log says is known beside it as plain lists."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.stack = contextlib.AsyncExitStack()
        self.folder = self.stack.enter_context(tempfile.TemporaryDirectory())
        self.log = self.run(self.stack.enter_async_context(log_at(Path(self.folder) / "s.db")))
        self.sessions: list[str] = []
        self.turns: dict[str, tuple[str, list[str]]] = {}
        self.approvals: list[tuple[str, str, str]] = []
        self.agents: list[str] = []
        self.asks: list[str] = []
        self.count = 0

    def run(self, work: Any) -> Any:
        return self.loop.run_until_complete(work)

    def new(self, kind: str) -> str:
        self.count += 1
        return f"{kind}_{self.count:05}"

    def append(self, session_id: str, data: Any, *, turn_id: str | None = None) -> Record:
        return self.run(self.log.append(session_id, data, actor=CLIENT, turn_id=turn_id))

    def teardown(self) -> None:
        self.run(self.stack.aclose())
        self.loop.close()

    # --- sessions

    @initialize()
    def begins(self) -> None:
        for _ in range(2):
            self.creates(parent=False)
        self.open_turn(self.sessions[0])
        self.ask(self.sessions[0], "x")

    @rule(parent=st.booleans())
    def creates(self, parent: bool) -> None:
        session_id = self.new("ses")
        root = self.sessions[0] if parent and self.sessions else None
        self.run(self.log.transact(lambda tx: begin(tx, session_id, root_id=root)))
        self.sessions.append(session_id)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def changes(self, data: st.DataObject) -> None:
        event = data.draw(
            st.one_of(
                st.builds(ModeChanged, mode=st.sampled_from(["ask", "plan", "work"])),
                st.builds(ModelChanged, model=st.sampled_from([None, "scripted/demo"])),
                st.sampled_from([SessionArchived(), SessionUnarchived(), SessionClosed()]),
                st.builds(
                    SessionUpdated,
                    changes=st.fixed_dictionaries(
                        {},
                        optional={
                            "title": st.sampled_from([None, "t", "é"]),
                            "pinned": st.booleans(),
                            "metadata": st.sampled_from([None, {"k": [1]}]),
                            "unknown": st.just(1),
                        },
                    ),
                ),
                st.sampled_from(
                    [
                        PlanUpdated(entries=()),
                        UnknownData(type="odd", data={}),
                        CancelRequested(scope="queue"),
                        Error(error=Failure(kind="internal", message="m")),
                    ]
                ),
            )
        )
        self.append(data.draw(st.sampled_from(self.sessions)), event)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), text=_TEXT)
    def says(self, data: st.DataObject, text: str) -> None:
        session_id = data.draw(st.sampled_from(self.sessions))
        event = data.draw(
            st.sampled_from(
                [
                    said(text, client_message_id=self.new("cm"), delivery="queue"),
                    said(text, delivery="steer"),
                    said(text, by="agent"),
                    said(text, by="peer"),
                    told(text),
                    Summary(
                        text=text,
                        covers_through=1,
                        author=Author(kind="system", name="s"),
                        reason="command",
                        usage=data.draw(st.sampled_from([None, Usage(requests=1, input_tokens=5)])),
                    ),
                ]
            )
        )
        self.append(session_id, event)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def drops(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(self.sessions))
        pending = self.run(self.log.query(TURN_SQL["pending_triggers"], session_id))
        self.append(session_id, TriggersDropped(seqs=tuple(r[0] for r in pending[:2]), reason="r"))

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), dropped=st.booleans())
    def delivers(self, data: st.DataObject, dropped: bool) -> None:
        """What a turn takes in from the inbox, or what never will be."""
        delivered = Delivered(
            delivery_id=self.new("dlv"), generation=self.count, digest="d", kind="peer"
        )
        event = (
            DeliveriesDropped(deliveries=(delivered,), reason="r")
            if dropped
            else evolve(said("news", by="agent"), delivered=delivered)
        )
        self.append(data.draw(st.sampled_from(self.sessions)), event)

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def deletes(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(self.sessions))
        self.run(self.log.transact(lambda tx: tx.delete_session(session_id, actor=CLIENT)))
        self.sessions.remove(session_id)
        self.turns.pop(session_id, None)
        self.approvals = [each for each in self.approvals if each[0] != session_id]
        self.agents = [each for each in self.agents if each != session_id]

    # --- agents

    @precondition(lambda self: self.sessions)
    @rule(data=st.data(), name=st.sampled_from(["one", "two"]))
    def spawns(self, data: st.DataObject, name: str) -> None:
        child, parent = self.new("ses"), data.draw(st.sampled_from(self.sessions))

        def begins(tx: Transaction) -> None:
            tx.begin_session(child, parent)
            event = log_agents.spawned(child, parent, parent, name)
            tx.append(child, event, actor=CLIENT)
            tx.append(child, told("the brief"), actor=CLIENT)

        self.run(self.log.transact(begins))
        self.sessions.append(child)
        self.agents.append(child)

    @precondition(lambda self: self.agents)
    @rule(data=st.data(), count=st.integers(1, 4))
    def happens(self, data: st.DataObject, count: int) -> None:
        agent_id = data.draw(st.sampled_from(self.agents))
        for _ in range(count):
            event = data.draw(log_agents.events(self.new, agent_id, self.asks))
            if isinstance(event, AgentAsked):
                self.asks.append(event.ask_id)
            self.append(agent_id, event)

    # --- turns

    @precondition(lambda self: self.sessions)
    @rule(data=st.data())
    def starts(self, data: st.DataObject) -> None:
        session_id = data.draw(st.sampled_from(self.sessions))
        if session_id not in self.turns:
            self.open_turn(session_id)

    def open_turn(self, session_id: str) -> None:
        turn_id = self.new("trn")
        pending = self.run(self.log.query(TURN_SQL["pending_triggers"], session_id))
        seqs = tuple(row[0] for row in pending)

        def begins(tx: Transaction) -> None:
            tx.append(
                session_id,
                TurnStarted(
                    turn_id=TurnId(turn_id),
                    index=tx.value(TURN_SQL["next_index"], session_id),
                    trigger=Trigger(kind="prompt", seqs=seqs),
                    model="scripted/demo",
                    mode="work",
                ),
                actor=CLIENT,
                turn_id=turn_id,
            )
            tx.append(session_id, Ack(admits=seqs), actor=CLIENT, turn_id=turn_id)

        self.run(self.log.transact(begins))
        self.turns[session_id] = (turn_id, [])

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), asks=st.booleans(), text=_TEXT)
    def calls(self, data: st.DataObject, asks: bool, text: str) -> None:
        session_id = data.draw(st.sampled_from(sorted(self.turns)))
        self.ask(session_id, text, asks=asks)

    def ask(self, session_id: str, text: str, *, asks: bool = True) -> None:
        turn_id, open_calls = self.turns[session_id]
        call_id = self.new("call")
        self.append(session_id, called(call_id, text=text), turn_id=turn_id)
        open_calls.append(call_id)
        if asks:
            approval_id = self.new("apr")
            request = ApprovalRequest(approval=_approval(session_id, approval_id, turn_id, call_id))
            self.append(session_id, request, turn_id=turn_id)
            self.approvals.append((session_id, approval_id, call_id))

    @precondition(lambda self: self.approvals)
    @rule(data=st.data(), outcomes=st.lists(_ENDS, min_size=1, max_size=2))
    def decides(self, data: st.DataObject, outcomes: list[Any]) -> None:
        """Also a second time, as only a faulty writer would: it must change nothing."""
        session_id, approval_id, call_id = data.draw(st.sampled_from(self.approvals))
        for outcome in outcomes:
            self.append(
                session_id,
                ApprovalDecision(
                    approval_id=ApprovalId(approval_id),
                    call_id=CallId(call_id),
                    resolution=Resolution(
                        outcome=outcome, by=CLIENT, via="method", at=self.log.now()
                    ),
                ),
            )

    @precondition(lambda self: any(calls for _, calls in self.turns.values()))
    @rule(data=st.data(), text=_TEXT)
    def returns(self, data: st.DataObject, text: str) -> None:
        session_id = data.draw(st.sampled_from(sorted(s for s, (_, c) in self.turns.items() if c)))
        turn_id, open_calls = self.turns[session_id]
        self.append(session_id, returned(open_calls.pop(), text), turn_id=turn_id)

    @precondition(lambda self: self.turns)
    @rule(data=st.data(), parks=st.booleans(), outcome=_OUTCOMES)
    def ends(self, data: st.DataObject, parks: bool, outcome: Any) -> None:
        session_id = data.draw(st.sampled_from(sorted(self.turns)))
        turn_id, open_calls = self.turns[session_id]
        retried = ModelRetried(attempt=1, delay_ms=1, error=Failure(kind="modelError", message="m"))
        self.append(session_id, retried, turn_id=turn_id)
        if parks:
            parked = TurnParked(turn_id=TurnId(turn_id), approval_ids=())
            self.append(session_id, parked, turn_id=turn_id)
            return
        for call_id in open_calls:
            self.append(session_id, returned(call_id, status="cancelled"), turn_id=turn_id)
        finished = TurnFinished(
            turn_id=TurnId(turn_id),
            outcome=outcome,
            answered_through=3,
            usage=data.draw(
                st.sampled_from(
                    [
                        Usage(),
                        Usage(requests=1, input_tokens=10, output_tokens=2),
                        Usage(requests=2, input_tokens=None, cost=0.5, currency="USD"),
                    ]
                )
            ),
            error=Failure(kind="internal", message="m") if outcome == "failed" else None,
            final_text="done",
        )
        self.append(session_id, finished, turn_id=turn_id)
        del self.turns[session_id]

    # --- what must hold

    @rule()
    def rebuilds(self) -> None:
        before = self.run(tables(self.log))
        self.run(self.log.rebuild())
        assert self.run(tables(self.log)) == before

    @invariant()
    def the_pure_reducers_agree(self) -> None:
        for session_id in self.sessions:
            values = [record.value for record in self.run(self.log.session(session_id))]
            state = session_state.replay(values)
            assert state is not None
            row = self.run(
                self.log.query(
                    "SELECT root_id, parent_id, mode, model, title, pinned, archived, closed "
                    "FROM sessions WHERE session_id = ?",
                    session_id,
                )
            )
            assert row == [
                (
                    state.root_id, state.parent_id, state.mode, state.model, state.title,
                    state.pinned, state.archived, state.closed,
                )
            ]  # fmt: skip
            known = approval_state.replay(values)
            rows = self.run(
                self.log.query(
                    "SELECT approval_id, state FROM approvals WHERE session_id = ?", session_id
                )
            )
            assert dict(rows) == {key: each.state for key, each in known.items()}

    @invariant()
    def the_agents_are_what_their_events_say(self) -> None:
        """coordination 19."""
        for agent_id in self.agents:
            values = [record.value for record in self.run(self.log.session(agent_id))]
            known = agents.find(self.log.glance, agent_id)
            assert known is not None and known == agent_state.replay(values)
        rows = self.run(self.log.query("SELECT agent_id FROM agents"))
        assert sorted(row[0] for row in rows) == sorted(self.agents)

    @invariant()
    def every_session_s_seqs_are_gap_free(self) -> None:
        rows = self.run(
            self.log.query(
                "SELECT h.session_id, h.seq, count(*), min(e.seq), max(e.seq) FROM heads h "
                "JOIN events e ON e.session_id = h.session_id GROUP BY h.session_id"
            )
        )
        assert sorted(row[0] for row in rows) == sorted(self.sessions)
        assert all(seq == count == last and first == 1 for _, seq, count, first, last in rows)


def test_coordination_86_87_projections_deleted_and_rebuilt_compare_equal() -> None:
    run_state_machine_as_test(
        Store,
        settings=settings(
            max_examples=15,
            stateful_step_count=25,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


async def test_every_table_that_follows_the_log_belongs_to_a_projection(store_path: Path) -> None:
    async with log_at(store_path) as log:
        names = {
            row[0]
            for row in await log.query("SELECT name FROM sqlite_master WHERE type = 'table'")
            if not row[0].startswith(("sqlite_", "search_", "search"))
        }
    projected = {table for projection in PROJECTIONS for table in projection.tables}
    own = {"meta", "events", "heads", "deletions", "blobs", "blob_refs", "drafts", "idempotency"}
    # who runs now, what people decided for good, what no turn has taken in or been told of yet, what is
    # being imported: facts of their own, not told by events
    facts = {"owners", "hosts", "rules", "inbox", "inboxes", "settled_claims", "imports"}
    facts |= {"runs_to_tell", "schedules", "schedule_fires"}
    # what links grant: an imported history must not
    facts |= {"peer_tokens", "peer_links", "peer_inbox", "peer_sent"}
    # programs that a host has started, to be ended by the next one
    facts |= {"external_processes"}
    assert names == projected | own | facts


async def test_rebuilding_after_a_crash_of_a_projection_s_code_changes_nothing(
    store_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        await log.append("ses_a", said("x"), actor=CLIENT)
        before = await tables(log)

        def broken(tx: Transaction, record: Record) -> None:
            raise RuntimeError("bad code")

        monkeypatch.setitem(log._writing.applying, "message", [broken])  # pyright: ignore[reportPrivateUsage]
        with pytest.raises(RuntimeError, match="bad code"):
            await log.rebuild()
        assert await tables(log) == before


async def test_rules_outlive_a_rebuild_and_go_with_the_session_they_belong_to(
    store_path: Path,
) -> None:
    async with log_at(store_path) as log:
        await session_in(log)
        asked = approvals.Approvals(log, suggest=lambda *_: ("shell", None))
        for scope, session_id in (("session", "ses_a"), ("global", None)):
            await asked.add_rule(
                Rule(
                    rule_id=RuleId(f"rule_{scope}"),
                    scope=scope,  # pyright: ignore[reportArgumentType]
                    effect="allow",
                    tool="shell",
                    created_at=log.now(),
                    by=CLIENT,
                    session_id=None if session_id is None else SessionId(session_id),
                )
            )
        await log.rebuild()
        assert len((await asked.rules())[0]) == 2
        await log.transact(lambda tx: tx.delete_session("ses_a", actor=AGENT))
        assert [r.rule_id for r in (await asked.rules())[0]] == ["rule_global"]
