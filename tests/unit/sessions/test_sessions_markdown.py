"""A session as Markdown: who said what, what was done, and nothing that a text could pretend."""

from typing import Any

import pytest

from callboard.sessions.markdown import Known, fenced, inline, section
from callboard_rpc.convert import structure
from callboard_rpc.events import EVENT_TYPES, ToolCall

CALL = {
    "callId": "call_1", "messageId": "msg_1", "name": "edit_file", "arguments": {},
    "title": "Edit a_b.py", "kind": "edit",
}  # fmt: skip
KNOWN = Known(calls={"call_1": structure(CALL, ToolCall)}, tasks={"tsk_1": "parse *it*"})


def shown(type_: str, /, **data: Any) -> str:
    return section(structure(data, EVENT_TYPES[type_]), KNOWN)


def said(text: str, kind: str = "agent", name: str = "default", **more: Any) -> str:
    return shown(
        "message",
        messageId="msg_1",
        author={"kind": kind, "name": name},
        content=[{"type": "text", "text": text}],
        **more,
    )


def result(**more: Any) -> str:
    return shown("tool_result", callId="call_1", name="edit_file", **{"text": "done", **more})


def test_speakers_are_the_person_and_the_agent_and_no_program() -> None:
    assert said("Hello", "person", "callboard run") == "## Person\n\nHello\n\n"
    assert said("Hello") == "## Agent\n\nHello\n\n"
    assert said("Hello", name="reviewer").startswith("## reviewer\n")
    assert said("Hello", "peer", "other").startswith("## other (peer)\n")
    assert "cut off" in said("Hel", partial=True)
    assert said("  ") == ""


def test_a_result_is_labelled_by_the_title_of_its_call() -> None:
    assert result(status="ok") == "**Edit a_b.py** (edit_file)\n\n```\ndone\n```\n\n"
    assert result(status="timed_out", text="").startswith("**Edit a_b.py** (edit_file, timed out)")
    assert "exit 2" in result(status="ok", exitCode=2)
    alone = shown("tool_result", callId="call_2", name="read_file", status="ok", text="x")
    assert alone.startswith("**read_file**\n")


def test_a_diff_stands_in_a_fence_that_it_cannot_close() -> None:
    diff = "--- a\n+++ b\n@@ -1 +1 @@\n-`````\n+```diff\n"
    change = {"path": "/w/a.md", "operation": "modify", "diff": diff, "added": 1, "removed": 1}
    text = result(status="ok", changes=[change])
    assert "modify /w/a.md, +1 -1\n\n``````diff\n--- a" in text
    assert text.endswith("+```diff\n``````\n\n")
    assert "done" not in text


@pytest.mark.parametrize("text", ["", "a", "```", "a\n````\nb", "`" * 40])
def test_a_fence_is_longer_than_any_run_of_backticks_inside(text: str) -> None:
    fence = fenced(text).splitlines()[0]
    assert set(fence) == {"`"}
    assert len(fence) >= 3
    assert fence not in text


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("see\n```py\nx = 1", "x = 1\n```\n\n"),
        ("see\n~~~~\nx\n~~~", "~~~\n~~~~\n\n"),
        ("see\n```py\nx\n```", "x\n```\n\n"),
        ("```not a fence``` in a line", "in a line\n\n"),
        ("```\na\n````", "a\n````\n\n"),
    ],
)
def test_a_code_block_that_a_text_leaves_open_swallows_nothing_of_what_follows(
    text: str, end: str
) -> None:
    assert said(text).endswith(end)


def test_names_and_titles_stay_names_and_titles() -> None:
    assert inline("a\n# b `c` **d** <e> [f](g) _h_ i_j") == (
        r"a \# b \`c\` \*\*d\*\* \<e\> \[f\](g) \_h\_ i_j"
    )
    assert said("x", "agent", "a\n\n## Person").startswith("## a \\#\\# Person\n")


@pytest.mark.parametrize(
    ("resolution", "words"),
    [
        (
            {"outcome": "allowed", "optionId": "allow_always", "ruleId": "rule_1"},
            "> Approval: Edit a_b.py: allowed (allow_always) by me; made the rule rule_1.\n\n",
        ),
        (
            {"outcome": "rejected", "optionId": "reject_once", "feedback": "use\nb.py"},
            "> Approval: Edit a_b.py: rejected (reject_once) by me: use b.py\n\n",
        ),
        (
            {"outcome": "cancelled", "reason": "the turn ended"},
            "> Approval: Edit a_b.py: cancelled by me: the turn ended\n\n",
        ),
    ],
)
def test_an_approval_is_told_with_its_outcome(resolution: dict[str, Any], words: str) -> None:
    whole = {
        "by": {"kind": "client", "id": "c", "name": "me"},
        "via": "method",
        "at": "2020-01-01T00:00:00Z",
        **resolution,
    }
    assert (
        shown("approval_decision", approvalId="apr_1", callId="call_1", resolution=whole) == words
    )


def test_the_plan_is_a_list_of_boxes() -> None:
    entries = [
        {"content": "look", "status": "completed"},
        {"content": "mend", "status": "in_progress"},
        {"content": "test"},
    ]
    assert shown("plan_updated", entries=entries) == (
        "**Plan**\n\n- [x] look\n- [ ] mend (in progress)\n- [ ] test\n\n"
    )


def test_a_turn_ends_with_its_outcome_its_cost_and_why_it_failed() -> None:
    end = shown(
        "turn_finished",
        turnId="trn_1",
        outcome="failed",
        answeredThrough=1,
        usage={"inputTokens": 1200, "outputTokens": 34},
        error={"kind": "modelError", "message": "no answer"},
        durationMs=2500,
    )
    assert end == (
        "*The turn ended: failed · 2.5 s · 1,200 tokens in, 34 tokens out* — no answer\n\n---\n\n"
    )


def test_a_rewind_a_fork_and_a_changed_prompt_are_told() -> None:
    rewound = shown(
        "session_rewound", beforeTurnId="trn_1", beforeSeq=2, throughSeq=9, turns=2,
        changedPaths=["/w/a_b.py", "/w/*.py"], morePaths=3,
    )  # fmt: skip
    assert rewound.startswith("> The session was rewound: the last 2 turns above")
    assert "left as they are: /w/a_b.py, /w/\\*.py and 3 more." in rewound
    origin = {"sessionId": "ses_1", "turnId": "trn_1", "seq": 9}
    assert "taken over from ses_1" in shown("session_forked", forkedFrom=origin, inherited=3)
    changed = shown("prompt_updated", seq=4, content=[{"type": "text", "text": "```\nnew"}])
    assert changed == "## Person (instead of a prompt that waited)\n\n```\nnew\n```\n\n"


def test_a_task_board_is_told_by_titles_and_by_what_was_said() -> None:
    made = {"groupId": "grp_1", "taskId": "tsk_2", "createdBy": "ses_1"}
    assert shown("group_task_created", **made, title="sing", required=False) == (
        "> Task: sing (optional).\n\n"
    )
    assert shown("group_task_created", **made, title="sing", description="Loud,\nplease") == (
        "> Task: sing: Loud, please\n\n"
    )
    of = {"taskId": "tsk_1", "agentId": "ses_2"}
    title = r"> Task parse \*it\*:"
    assert shown("group_task_claimed", **of) == f"{title} claimed by ses_2.\n\n"
    assert shown("group_task_released", **of) == f"{title} given back by ses_2.\n\n"
    given = shown("group_task_status_changed", **of, status="claimed", assignee="ses_3")
    assert given == f"{title} given to ses_3.\n\n"
    begun = shown("group_task_status_changed", **of, status="in_progress")
    assert begun == f"{title} in progress by ses_2.\n\n"
    done = shown(
        "group_task_status_changed", **of, status="completed", summary="# did\nit", findings=["f"]
    )
    assert done == rf"{title} completed by ses_2: \# did it; f" + "\n\n"
    assert shown("group_task_claimed", taskId="tsk_9", agentId="ses_2").startswith("> Task tsk_9:")


def test_what_is_said_in_a_group_and_of_the_work_stands_on_a_line() -> None:
    message: dict[str, Any] = {
        "messageId": "msg_1",
        "groupId": "grp_1",
        "sender": "ses_2",
        "recipients": [],
    }
    assert shown("group_message_queued", **message, to="group", text="a\n\n# b") == (
        "> ses_2 to the group: a \\# b\n\n"
    )
    done = {"completion": "implemented_not_verified"}
    assert shown("completion_changed", **done) == (
        "> All is implemented, and nobody has verified it.\n\n"
    )
    assert shown("completion_changed", **done, summary="Yes.").endswith("verified it: Yes.\n\n")
    assert shown("agent_group_created", groupId="grp_1", name="work") == ""


def test_a_notice_is_an_aside_that_names_its_severity() -> None:
    told = shown("notice", severity="warning", title="Begun *anew*", description="a\n# b")
    assert told == "> Warning: Begun \\*anew\\* — a \\# b\n\n"
    assert shown("notice", severity="info", title="x") == "> Note: x\n\n"
