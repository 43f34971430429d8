"""What root and agents are drawn to do at a board: each step names what is done, and has its fields. How often each comes
is said here; who and what is meant by them, the state machine finds out as the board stands."""

from typing import Any

from hypothesis import strategies as st

hosts = st.sampled_from([0, 1])
actors = st.sampled_from(["owner", "owner", "owner", "owner", "root", 0, 1, 2])
"""Who does something: the task's owner, the root, one of the agents that are open."""
mostly_root = st.sampled_from(["root", "root", "root", "root", 0])
agents = st.sampled_from(
    [*(("member", n) for n in (0, 1, 2, 0, 1)), ("any", 0), ("any", 2), "root", "unknown"]
)
"""To whom: one who takes part or any that the root has, open or closed."""
tasks = st.sampled_from(
    [
        *(("fit", n) for n in (0, 0, 0, 1, 1, 2, 2)),
        *(("claimed", n) for n in (0, 1)),
        *(
            (status, 0)
            for status in (
                "in_progress",
                "in_progress",
                "blocked",
                "blocked",
                "pending",
                "completed",
                "cancelled",
            )
        ),
        ("any", 3),
        "unknown",
        "foreign",
    ]
)
"""One that stands as the operation wants it, or in some other way, or one that is not on this board."""
before = st.lists(st.sampled_from([0, 0, 1, 2, 3, 0, 1, 2, "unknown"]), max_size=2)
ways = st.sampled_from(
    [
        ("claim",),
        (),
        ("claim", "start"),
        ("claim", "block"),
        ("claim", "start"),
        ("claim", "complete"),
    ]
)
begun = st.tuples(before, ways, st.sampled_from(["root", 0, 1]))
first = st.lists(begun, min_size=3, max_size=5)
"""The first tasks: what each depends on, what was done to it, and by whom."""
LONG = {"4,000 bytes": "é" * 2_000, "4,002 bytes": "é" * 2_001, "201 characters": "x" * 201}
"""What is too long for being shown with a step that has failed."""
titles = st.sampled_from(
    ["one", " two \n words ", "three", "four", "five", "six", " ", "201 characters"]
)
paths = st.lists(
    st.sampled_from(["a.txt", " ./A.TXT", "src\\b.py", "src/b.py", "src", " "]), max_size=2
)
texts = st.sampled_from(
    ["Did it.", " Said\nmore. ", "Did it again.", "And again.", "Done.", "", " "]
)
speech = st.sampled_from(["One.", " <Two> & more. ", "Three.", "", "4,000 bytes", "4,002 bytes"])


def drawn(what: str, **fields: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A step: what is done, and the fields of it."""
    return st.fixed_dictionaries({"what": st.just(what), **fields})


def often(times: int, what: str, **fields: st.SearchStrategy[Any]) -> list[Any]:
    return [drawn(what, **fields) for _ in range(times)]


steps = st.one_of(
    *often(
        3,
        "create",
        actor=mostly_root,
        at=hosts,
        title=titles,
        after=before,
        required=st.booleans(),
        expected=paths,
    ),
    *often(5, "claim", actor=actors, at=hosts, number=tasks),
    *often(3, "claim_at_once", one=st.integers(0, 3), other=st.integers(0, 2), number=tasks),
    *often(
        11,
        "change",
        actor=actors,
        at=hosts,
        operation=st.sampled_from(
            ["start", "start", "complete", "complete", "complete", "block", "release"]
        ),
        number=tasks,
        text=texts,
        found=st.lists(texts, max_size=2),
        touched=paths,
    ),
    *often(1, "cancel", actor=mostly_root, at=hosts, number=tasks, reason=st.none() | texts),
    *often(4, "reassign", actor=mostly_root, at=hosts, number=tasks, to=agents),
    *often(
        5,
        "send",
        actor=st.sampled_from(["root", 0, 1, 2]),
        at=hosts,
        to=st.sampled_from(["group", "group", "root"]) | agents.map(lambda agent: (agent,)),
        text=speech,
    ),
    *often(2, "declare_complete", actor=mostly_root, at=hosts),
    *often(2, "go_on", actor=st.sampled_from(["root", 0, 1, 2]), at=hosts),
    *often(2, "stop", agent=st.integers(0, 2), at=hosts, closes=st.booleans()),
    *often(1, "restart", at=hosts, killed=st.booleans(), wiped=st.booleans()),
)
early = st.lists(steps, max_size=2)
"""What is done where there is no group yet."""
