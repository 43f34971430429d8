"""Policy: coordination 10 and 74-78, session-messaging 11, interrupts-and-peers 77, DESIGN 5."""

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callboard.approvals.patterns import allows_command, allows_paths, denies_command, denies_paths
from callboard.approvals.policy import STRICTNESS, Call, Decision, Permissions, decide
from callboard_rpc.approvals import Effect, Rule, RuleScope
from callboard_rpc.common import Actor, Mode, RuleId, SessionId

ROOT = "/ws"
ME = Actor(kind="client", id="c")
MODES: tuple[Mode, ...] = ("ask", "plan", "work")


def rule(
    effect: Effect,
    tool: str = "*",
    pattern: str | None = None,
    *,
    scope: RuleScope = "global",
    session: str | None = None,
    workspace: str | None = None,
) -> Rule:
    return Rule(
        rule_id=RuleId(f"rul_{effect}_{tool}_{pattern}"),
        scope=scope,
        effect=effect,
        tool=tool,
        pattern=pattern,
        created_at="2030-01-01T00:00:00Z",
        by=ME,
        session_id=SessionId(session) if session else None,
        workspace=workspace,
    )


def command(text: str) -> Call:
    return Call(tool="run_command", effect="execute", roots=(ROOT,), command=text, paths=(ROOT,))


def write(*paths: str) -> Call:
    return Call(tool="write_file", effect="write", roots=(ROOT,), paths=paths)


def read(*paths: str) -> Call:
    return Call(tool="read_file", effect="read", roots=(ROOT,), paths=paths)


PLAN = Call(tool="update_plan", effect="kernel", roots=(ROOT,))
WORK = Permissions(mode="work")


def effect_of(call: Call, permissions: Permissions = WORK) -> Effect:
    return decide(call, permissions).effect


# --- defaults and modes ------------------------------------------------------------------------------


def test_coordination_10_reads_are_allowed_and_changes_asked_about() -> None:
    assert effect_of(read("/ws/a")) == "allow"
    assert effect_of(write("/ws/a")) == "ask"
    assert effect_of(command("ls")) == "ask"
    assert effect_of(PLAN) == "allow"


@pytest.mark.parametrize("mode", ["ask", "plan"])
def test_coordination_75_ask_and_plan_deny_the_same_and_kernel_tools_still_work(mode: Mode) -> None:
    permissions = Permissions(mode=mode, rules=(rule("allow"),), policy={"*": "allow"})
    assert effect_of(write("/ws/a"), permissions) == "deny"
    assert effect_of(command("ls"), permissions) == "deny"
    assert effect_of(read("/ws/a"), permissions) == "allow"
    assert effect_of(PLAN, permissions) == "allow"
    assert mode in decide(write("/ws/a"), permissions).reason
    assert not decide(write("/ws/a"), permissions).hard


def test_coordination_10_an_unknown_tool_is_denied() -> None:
    unknown = Call(tool="launch_missiles", effect=None, roots=(ROOT,))
    decision = decide(unknown, Permissions(mode="work", rules=(rule("allow"),)))
    assert decision.effect == "deny"
    assert "launch_missiles" in decision.reason


def test_messaging_11_a_tool_out_of_scope_is_denied_at_call_time() -> None:
    scoped = Permissions(mode="work", tools=frozenset({"read_file"}), rules=(rule("allow"),))
    assert effect_of(read("/ws/a"), scoped) == "allow"
    assert effect_of(write("/ws/a"), scoped) == "deny"
    assert effect_of(read("/ws/a"), Permissions(mode="work", tools=frozenset())) == "deny"


# --- what is never done ------------------------------------------------------------------------------

NEVER = [
    "sudo ls",
    "/usr/bin/sudo ls",
    "s\\udo ls",
    "'su'do ls",
    "ls && sudo rm x",
    "ls; sudo x",
    "ls | sudo tee /etc/x",
    "ls\nsudo x",
    "A=1 sudo x",
    "echo $(sudo x)",
    'echo "`sudo x`"',
    "echo ${X:-$(sudo x)}",
    "bash -c 'sudo x'",
    'sh -lc "cd /; sudo x"',
    "eval sudo x",
    "env -i A=1 sudo x",
    "timeout 5 sudo x",
    "timeout -k 1 5 sudo x",
    "timeout --foreground 5 sudo x",
    "nohup nice -n 5 sudo x",
    "xargs -I {} sudo rm {}",
    "find . -name x -exec sudo rm {} \\;",
    "if true; then sudo x; fi",
    "(cd x; sudo y)",
    "f() { sudo x; }; f",
    "cat <(sudo x)",
    "bash <<EOF\nsudo x\nEOF",
    "cat <<EOF\n$(sudo x)\nEOF",
    "bash <<< 'sudo x'",
    "sudo 'unbalanced",
    "env" + " -u X" * 50 + " sudo x",
    "x" * 140_000 + "; sudo y",
    "su - root",
    "doas x",
    "rm -rf /",
    "rm -rf /*",
    "rm -r -f //",
    "rm -fr /./",
    "rm -rf '/'",
    "rm -rf ~",
    "rm -rf ~/",
    "rm -rf ~/*",
    "rm -Rf $HOME",
    'rm -rf "${HOME}"/',
    "rm --recursive /home/someone",
    "rm -rf /usr /tmp/x",
    "rm -rf build/../../../../etc/.. /etc/../",
    "rm -rf --no-preserve-root x",
    "find / -delete",
    "find ~ -type f -exec rm {} +",
    "chmod -R 777 /",
    "chown -R me /etc",
    "mv ~ /tmp/x",
    "mkfs.ext4 /dev/sda1",
    "dd if=/dev/zero of=/dev/sda bs=1M",
    "echo x > /dev/sda",
    "cat x >/dev/nvme0n1",
    "shred /dev/sda",
    "wipefs -a /dev/sda",
    "shutdown -h now",
    "reboot",
    "systemctl poweroff",
    "init 0",
    ":(){ :|:& };:",
    "bomb() { bomb | bomb & }; bomb",
    "kill -9 -1",
    "userdel me",
    "diskutil eraseDisk APFS x disk0",
    "format c:",
]

ORDINARY = [
    "grep -rn sudo README.md",
    "echo 'sudo rm -rf /'",
    'git commit -m "sudo rm -rf / is denied; shutdown too"',
    "man sudo",
    "rm -rf build",
    "rm -rf ./node_modules /tmp/x/y",
    "rm -rf ~/project/build",
    "rm /etc/x",
    "ls /",
    "find / -name x",
    "find . -delete",
    "chmod -R u+w build",
    "dd if=a of=b",
    "dd if=/dev/zero of=/dev/null count=1",
    "echo x > /dev/null 2>&1",
    "cat <<'EOF' > install.sh\nsudo apt install x\nrm -rf /\nEOF",
    "cat > x <<EOF\nsudo x\nEOF\nls",
    "npm run format",
    "black format.py",
    "# sudo x\nls",
    "kill -9 1234",
    "kill -1 1234",
    "xargs grep -r sudo",
    "env A=1 grep sudo x",
    "git diff --stat -- shutdown.py",
    "fdisk -l",
    "sysctl -a",
    "python format.py c:",
]


@pytest.mark.parametrize("text", NEVER, ids=lambda text: text[:40])
def test_coordination_74_privileged_and_destructive_commands_are_denied_for_good(text: str) -> None:
    everything = (
        rule("allow"),
        rule("allow", "run_command", "=" + text),
        rule("allow", "*", "sudo"),
    )
    for mode in MODES:
        permissions = Permissions(
            mode=mode, rules=everything, policy={"*": "allow", "execute": "allow"}
        )
        decision = decide(command(text), permissions)
        assert (decision.effect, decision.hard) == ("deny", True)
        assert "never" in decision.reason


@pytest.mark.parametrize("text", ORDINARY)
def test_coordination_74_what_merely_speaks_of_such_commands_is_not(text: str) -> None:
    assert decide(command(text), WORK).effect == "ask"
    assert decide(command(text), Permissions(mode="work", rules=(rule("allow"),))).effect == "allow"


@given(
    st.sampled_from(NEVER),
    st.sampled_from(MODES),
    st.lists(
        st.builds(
            rule,
            st.sampled_from(["allow", "ask", "deny"]),
            st.sampled_from(["*", "run_command"]),
            st.sampled_from([None, "sudo", "rm", "ls", "**"]),
        ),
        max_size=4,
    ),
    st.dictionaries(
        st.sampled_from(["*", "run_command", "execute"]), st.sampled_from(["allow", "ask", "deny"])
    ),
)
def test_coordination_74_no_mode_rule_or_configuration_overrides_it(
    text: str, mode: Mode, rules: list[Rule], policy: dict[str, Effect]
) -> None:
    permissions = Permissions(mode=mode, rules=tuple(rules), policy=policy)
    child = attrs.evolve(permissions, ceiling=permissions)
    for each in (permissions, child):
        decision = decide(command(text), each)
        assert (decision.effect, decision.hard) == ("deny", True)


# --- rules -------------------------------------------------------------------------------------------


def test_a_rule_allows_what_its_prefix_of_whole_words_covers() -> None:
    npm = Permissions(mode="work", rules=(rule("allow", "run_command", "npm test"),))
    for text in (
        "npm test",
        "npm  test",
        "npm test -- --watch",
        "'npm' test",
        "npm test 2>&1",
        "npm test >/dev/null",
    ):
        assert effect_of(command(text), npm) == "allow", text
    for text in ("npm tests", "npm", "npm run test", "/tmp/npm test", "./npm test", "NPM test"):
        assert effect_of(command(text), npm) == "ask", text


@pytest.mark.parametrize(
    "text",
    [
        "npm test; rm x",
        "npm test && rm x",
        "npm test || rm x",
        "npm test | tee x",
        "npm test & rm x",
        "npm test\nrm x",
        "npm test > x",
        "npm test >> x",
        "npm test 2> x",
        "npm test < x",
        "npm test $(rm x)",
        "npm test `rm x`",
        'npm test "$(rm x)"',
        "npm test $X",
        "npm test ${X}",
        "npm test <(rm x)",
        "X=1 npm test",
        "PATH=. npm test",
        "env npm test",
        "npm test &",
        "(npm test)",
        "{ npm test; }",
        "npm() { rm x; }; npm test",
        "npm test 'unbalanced",
        "npm test \\",
        "npm test <<EOF\nx\nEOF",
        "npm test $'a'",
        "! npm test",
        "while npm test; do npm test; done",
        "$'npm' test",
        "npm test >&x",
        "npm test &>x",
        "",
        " ",
        "#npm test",
    ],
)
def test_messaging_11_a_rule_never_allows_more_than_one_plain_command(text: str) -> None:
    assert (
        effect_of(command(text), Permissions(mode="work", rules=(rule("allow", "*", "npm test"),)))
        == "ask"
    )


def test_each_part_of_a_line_needs_a_rule_of_its_own() -> None:
    rules = (rule("allow", "run_command", "npm test"), rule("allow", "run_command", "tail"))
    both = Permissions(mode="work", rules=rules)
    assert effect_of(command("npm test 2>&1 | tail -20 && npm test"), both) == "allow"
    assert effect_of(command("npm test | tail -20 | head"), both) == "ask"


def test_an_exact_rule_covers_that_line_alone() -> None:
    text = "python scripts/a.py | sort > out.txt"
    exact = Permissions(mode="work", rules=(rule("allow", "run_command", "=" + text),))
    assert effect_of(command(text), exact) == "allow"
    assert effect_of(command(f" {text}\n"), exact) == "allow"
    assert effect_of(command(text + " "), exact) == "allow"
    assert effect_of(command(text + ".bak"), exact) == "ask"
    assert effect_of(command(text + "; ls"), exact) == "ask"


@pytest.mark.parametrize(
    "text",
    [
        "git push",
        "/usr/bin/git push --force",
        "git -C dir -c a=b push",
        "ls; git push",
        "X=1 git push",
        "echo $(git push)",
        "sh -c 'git push'",
        "xargs -n 1 git push",
        "git push > /dev/null",
        "(git push",
        "git 'push",
        "env git push",
        "nohup git push &",
    ],
)
def test_a_denial_finds_its_command_wherever_it_stands(text: str) -> None:
    permissions = Permissions(
        mode="work", rules=(rule("allow"), rule("deny", "run_command", "git push"))
    )
    decision = decide(command(text), permissions)
    assert decision.effect == "deny"
    assert not decision.hard
    assert decision.rule is not None and decision.rule.effect == "deny"


@pytest.mark.parametrize(
    "text", ["git pushd", "git commit -m push", "echo git push", "git log push"]
)
def test_a_denial_is_about_whole_words_of_that_command(text: str) -> None:
    assert not denies_command("git push", text)


def test_messaging_11_rm_is_not_rmdir() -> None:
    assert denies_command("rm", "rm x")
    assert denies_command("rm", "/bin/rm x")
    assert not denies_command("rm", "rmdir x")


@pytest.mark.parametrize(
    "text",
    [
        "git -x " * 3000 + "z",
        "env -a " * 3000,
        "xargs -a env -b=1 " * 2000,
        "$(" * 3000,
        "(" * 60000,
        "`" * 5000,
        "a <<E " * 2000,
        "'" * 9999,
        "x" * 140000 + " sudo y",
    ],
)
def test_hostile_command_lines_take_no_endless_time(text: str) -> None:
    permissions = Permissions(
        mode="work", rules=(rule("deny", "*", "git push"), rule("allow", "*", "git status"))
    )
    assert effect_of(command(text), permissions) in ("ask", "deny")


def test_paths_are_judged_as_globs_relative_to_the_workspace() -> None:
    source = Permissions(mode="work", rules=(rule("allow", "write_file", "src/**"),))
    assert effect_of(write("/ws/src/a/b.py"), source) == "allow"
    assert effect_of(write("/ws/src/a.py", "/ws/other.py"), source) == "ask"
    assert effect_of(write("/ws/other/src2/a"), source) == "ask"
    assert effect_of(write("/wsx/src/a.py"), source) == "ask"
    assert effect_of(write(), source) == "ask"
    assert allows_paths("*.md", ("/ws/a/b.md",), (ROOT,))
    assert not allows_paths("!*.md", ("/ws/a/b.txt",), (ROOT,))
    assert not allows_paths("", ("/ws/a",), (ROOT,))
    assert allows_paths("a.txt", ("/more/a.txt",), (ROOT, "/more"))
    denied = Permissions(mode="work", rules=(rule("allow"), rule("deny", "*", "secret/**")))
    assert effect_of(write("/ws/a", "/ws/secret/x"), denied) == "deny"
    assert effect_of(read("/ws/secret/x"), denied) == "deny"
    assert denies_paths("/etc/**", ("/etc/passwd",), (ROOT,))


def test_outside_of_the_workspace_is_asked_about_whatever_rules_allow() -> None:
    permissions = Permissions(mode="work", rules=(rule("allow"),), policy={"*": "allow"})
    for call in (
        read("/etc/passwd"),
        write("/etc/x"),
        attrs.evolve(command("ls"), paths=("/etc",)),
    ):
        decision = decide(call, permissions)
        assert (decision.effect, decision.forced) == ("ask", True)
        assert "outside" in decision.reason


@pytest.mark.parametrize(
    "path",
    [
        "/ws/.git/hooks/pre-commit",
        "/ws/sub/.git/config",
        "/ws/.GIT/x",
        "/ws/.callboard/config.toml",
        "/ws/.vscode/tasks.json",
        "/ws/.envrc",
        "/ws/.bashrc",
        "/ws/.ssh/authorized_keys",
        "/ws/.config/callboard/config.toml",
    ],
)
def test_coordination_10_protected_places_are_asked_about_whatever_rules_allow(path: str) -> None:
    permissions = Permissions(mode="work", rules=(rule("allow"), rule("allow", "write_file", "**")))
    assert (decide(write(path), permissions).effect, decide(write(path), permissions).forced) == (
        "ask",
        True,
    )
    assert effect_of(read(path), permissions) == "allow"
    assert effect_of(write("/ws/.gitignore"), permissions) == "allow"


def test_a_rule_counts_only_in_its_own_session_or_workspace() -> None:
    session = rule("allow", scope="session", session="ses_1")
    assert (
        effect_of(command("x"), Permissions(mode="work", sessions=("ses_1",), rules=(session,)))
        == "allow"
    )
    assert (
        effect_of(command("x"), Permissions(mode="work", sessions=("ses_2",), rules=(session,)))
        == "ask"
    )
    assert effect_of(command("x"), Permissions(mode="work", rules=(session,))) == "ask"
    here = rule("allow", scope="workspace", workspace=ROOT)
    there = rule("allow", scope="workspace", workspace="/elsewhere")
    assert effect_of(command("x"), Permissions(mode="work", rules=(here,))) == "allow"
    assert effect_of(command("x"), Permissions(mode="work", rules=(there,))) == "ask"
    nowhere = rule("allow", scope="workspace")
    assert (
        effect_of(
            attrs.evolve(command("x"), roots=(), paths=()),
            Permissions(mode="work", rules=(nowhere,)),
        )
        == "ask"
    )


def test_a_rule_that_asks_comes_before_one_that_allows() -> None:
    rules = (rule("allow", "run_command", "npm test"), rule("ask", "run_command"))
    assert effect_of(command("npm test"), Permissions(mode="work", rules=rules)) == "ask"


def test_the_most_specific_of_equal_rules_is_the_one_that_is_named() -> None:
    special = rule("allow", "run_command", "npm test")
    decision = decide(command("npm test"), Permissions(mode="work", rules=(rule("allow"), special)))
    assert decision.rule == special


# --- configuration -----------------------------------------------------------------------------------


def test_design_5_the_configured_policy_goes_from_special_to_general() -> None:
    policy: dict[str, Effect] = {
        "*": "ask",
        "write": "allow",
        "execute": "ask",
        "run_command(npm test)": "allow",
        "run_command(npm publish)": "deny",
        "write_file(docs/**)": "ask",
        "read_file": "ask",
    }
    configured = Permissions(mode="work", policy=policy)
    assert effect_of(command("npm test"), configured) == "allow"
    assert effect_of(command("npm test; npm publish"), configured) == "deny"
    assert effect_of(command("ls"), configured) == "ask"
    assert effect_of(write("/ws/a"), configured) == "allow"
    assert effect_of(write("/ws/docs/a"), configured) == "ask"
    assert effect_of(read("/ws/a"), configured) == "ask"


def _interrupts(tool: str) -> Call:
    return Call(tool=tool, effect="kernel", roots=(ROOT,), permission="interrupt_agent")


@pytest.mark.parametrize("effect", ["deny", "ask"])
def test_peers_11_what_is_said_of_a_shared_permission_holds_for_every_tool_that_has_it(
    effect: Effect,
) -> None:
    of_all = ("steer_agent", "cancel_agent", "abort_agent")
    said = [
        attrs.evolve(WORK, rules=(rule(effect, "interrupt_agent"),)),
        attrs.evolve(WORK, policy={"interrupt_agent": effect}),
        attrs.evolve(WORK, narrowing={"interrupt_agent": effect}),
        attrs.evolve(WORK, ceiling=attrs.evolve(WORK, rules=(rule(effect, "interrupt_agent"),))),
    ]
    for permissions in said:
        assert {effect_of(_interrupts(tool), permissions) for tool in of_all} == {effect}
        assert effect_of(PLAN, permissions) == "allow"
    # what is said of one is said of that one
    for permissions in (
        attrs.evolve(WORK, rules=(rule(effect, "abort_agent"),)),
        attrs.evolve(WORK, policy={"abort_agent": effect}),
    ):
        assert [effect_of(_interrupts(tool), permissions) for tool in of_all] == [
            "allow",
            "allow",
            effect,
        ]
    # and goes before what is said of all, unless that denies
    both = attrs.evolve(WORK, policy={"interrupt_agent": effect, "abort_agent": "allow"})
    assert effect_of(_interrupts("abort_agent"), both) == ("deny" if effect == "deny" else "allow")


def test_a_denial_for_an_effect_beats_an_allowance_for_a_tool() -> None:
    policy: dict[str, Effect] = {
        "execute": "deny",
        "run_command": "allow",
        "run_command(ls)": "allow",
    }
    assert effect_of(command("ls"), Permissions(mode="work", policy=policy)) == "deny"


def test_protocol_7_what_the_workspace_narrows_holds_against_general_allowances() -> None:
    narrowed = Permissions(
        mode="work",
        policy={"run_command": "allow", "read": "allow"},
        narrowing={"execute": "ask", "read_file(keys/**)": "deny"},
        rules=(rule("allow", "run_command", "npm"),),
    )
    assert effect_of(command("npm test"), narrowed) == "ask"
    assert effect_of(read("/ws/keys/a"), narrowed) == "deny"
    assert effect_of(read("/ws/a"), narrowed) == "allow"
    here = rule("allow", "run_command", "npm", scope="workspace", workspace=ROOT)
    assert effect_of(command("npm test"), attrs.evolve(narrowed, rules=(here,))) == "allow"
    assert effect_of(PLAN, attrs.evolve(narrowed, narrowing={"kernel": "deny"})) == "deny"


# --- parent and child --------------------------------------------------------------------------------

TEXTS = ["npm test", "ls | sort", "sudo x", "rm -rf build", "git -C x push", "echo $(ls)", "'"]
PATTERNS = [
    None,
    "npm",
    "npm test",
    "ls",
    "git push",
    "src/**",
    "**",
    "=ls | sort",
    "sudo",
    "!x",
    "'",
]
CALLS = st.one_of(
    st.sampled_from(TEXTS).map(command),
    st.sampled_from(["/ws/src/a", "/ws/b", "/etc/x", "/ws/.git/x"]).map(write),
    st.sampled_from(["/ws/src/a", "/etc/x"]).map(read),
    st.just(PLAN),
    st.just(Call(tool="other", effect=None, roots=(ROOT,))),
)
EFFECTS = st.sampled_from(["allow", "ask", "deny"])
RULES = st.lists(
    st.builds(
        rule,
        EFFECTS,
        st.sampled_from(["*", "run_command", "write_file"]),
        st.sampled_from(PATTERNS),
    ),
    max_size=5,
).map(tuple)
TABLES = st.dictionaries(
    st.sampled_from(
        [
            "*",
            "read",
            "write",
            "execute",
            "kernel",
            "run_command",
            "run_command(npm)",
            "write_file(src/**)",
        ]
    ),
    EFFECTS,
    max_size=4,
)
PERMISSIONS = st.builds(
    Permissions,
    mode=st.sampled_from(MODES),
    rules=RULES,
    policy=TABLES,
    narrowing=TABLES.map(lambda t: {k: v for k, v in t.items() if v != "allow"}),
    tools=st.none() | st.frozensets(st.sampled_from(["run_command", "write_file", "read_file"])),
)


def strictness(decision: Decision) -> int:
    return STRICTNESS[decision.effect]


@settings(max_examples=300)
@given(CALLS, PERMISSIONS, PERMISSIONS, PERMISSIONS)
def test_peers_77_a_child_may_never_do_more_than_its_parents(
    call: Call, own: Permissions, parent: Permissions, grandparent: Permissions
) -> None:
    above = attrs.evolve(parent, ceiling=grandparent)
    result = decide(call, attrs.evolve(own, ceiling=above))
    alone = [decide(call, p) for p in (own, parent, grandparent, above)]
    assert strictness(result) == max(map(strictness, alone))
    assert result.hard == any(d.hard for d in alone)


@settings(max_examples=300)
@given(CALLS, PERMISSIONS)
def test_peers_77_a_matching_denial_always_wins(call: Call, permissions: Permissions) -> None:
    denials = [
        attrs.evolve(permissions, rules=(*permissions.rules, rule("deny", call.tool))),
        attrs.evolve(permissions, rules=(rule("deny"), *permissions.rules)),
        attrs.evolve(permissions, policy={**permissions.policy, "*": "deny"}),
        attrs.evolve(permissions, narrowing={**permissions.narrowing, call.tool: "deny"}),
    ]
    for each in denials:
        assert decide(call, each).effect == "deny"


@settings(max_examples=300)
@given(CALLS, PERMISSIONS, RULES.map(lambda rules: tuple(r for r in rules if r.effect != "allow")))
def test_rules_that_ask_or_deny_never_widen(
    call: Call, permissions: Permissions, more: tuple[Rule, ...]
) -> None:
    narrowed = attrs.evolve(permissions, rules=(*permissions.rules, *more))
    assert strictness(decide(call, narrowed)) >= strictness(decide(call, permissions))


@settings(max_examples=300)
@given(CALLS, PERMISSIONS, TABLES.map(lambda t: {k: v for k, v in t.items() if v != "allow"}))
def test_protocol_7_a_workspace_never_widens(
    call: Call, permissions: Permissions, narrowing: dict[str, Effect]
) -> None:
    narrowed = attrs.evolve(permissions, narrowing=narrowing)
    plain = attrs.evolve(permissions, narrowing={})
    assert strictness(decide(call, narrowed)) >= strictness(decide(call, plain))


@given(st.text(alphabet="npm test;|&<>$(){}`'\"\\\n=#!*~ rmx/", max_size=40))
def test_a_denial_with_the_same_pattern_covers_all_that_an_allowance_covers(text: str) -> None:
    if allows_command(["npm test"], text):
        assert denies_command("npm test", text)
