"""Which model is used and why, with nothing configured, with everything, and with nonsense."""

import subprocess
import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest

from callboard.models.base import (
    Model,
    ModelError,
    ModelRequest,
    Price,
    Text,
    TextDelta,
    UserMessage,
)
from callboard.models.catalog import ModelCatalog, ModelSettings
from callboard.models.discovery import Candidate, LocalServer, discover
from callboard.models.http import HttpClient, Timeouts
from callboard.models.keys import KeyRing
from callboard.models.scripted import Scripted
from callboard_rpc.errors import CallboardError
from callboard_rpc.server import ModelInfo
from fakes.http_fake import HttpFake, Reply, Request, json_reply

pytestmark = pytest.mark.anyio

ANTHROPIC_STREAM = (Path(__file__).parents[2] / "fixtures" / "anthropic" / "text.sse").read_bytes()
OLLAMA = LocalServer(
    provider="ollama", title="Ollama", base_url="http://127.0.0.1:9/v1", models=("qwen3:8b", "b")
)


class Prober:
    def __init__(self, *servers: LocalServer) -> None:
        self.servers = servers
        self.times = 0

    async def __call__(self) -> tuple[LocalServer, ...]:
        self.times += 1
        return self.servers


class Bench:
    """A catalogue with everything around it in the test's hands."""

    def __init__(
        self,
        tmp_path: Path,
        environ: Mapping[str, str] | None = None,
        prober: Prober | None = None,
        **settings: Any,
    ) -> None:
        self.now = 0.0
        self.http = HttpClient()
        self.prober = prober or Prober()
        self.keys = KeyRing(environ or {}, tmp_path, lambda: None)
        self.catalog = ModelCatalog(
            ModelSettings(**settings),
            self.keys,
            self.http,
            environ or {},
            self.prober,
            clock=lambda: self.now,
        )

    async def infos(self) -> dict[str, ModelInfo]:
        return {info.model_id: info for info in await self.catalog.list()}


async def refusal(catalog: ModelCatalog, model_id: str | None) -> CallboardError:
    with pytest.raises(CallboardError) as caught:
        await catalog.resolve(model_id)
    return caught.value


async def answer(model: Model) -> str:
    request = ModelRequest(system="", messages=(UserMessage(blocks=(Text(text="hi"),)),))
    return "".join([e.text async for e in model.stream(request) if isinstance(e, TextDelta)])


# --- which one --------------------------------------------------------------------------------


async def test_with_nothing_at_all_it_is_the_demo_and_says_why(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    selection = await bench.catalog.selected()
    assert selection.model_id == "scripted/demo"
    assert "no API key" in selection.source
    assert isinstance(await bench.catalog.resolve(), Scripted)


@pytest.mark.parametrize(
    ("variable", "model_id"),
    [
        ("OPENAI_API_KEY", "openai/gpt-5.4"),
        ("ANTHROPIC_API_KEY", "anthropic/claude-sonnet-5"),
    ],
)
async def test_a_key_in_the_environment_chooses_its_provider(
    tmp_path: Path, variable: str, model_id: str
) -> None:
    bench = Bench(tmp_path, {variable: "sk-0123456789"}, Prober(OLLAMA))
    selection = await bench.catalog.selected()
    assert selection.model_id == model_id
    assert variable in selection.source
    assert "sk-0123456789" not in selection.source
    assert (await bench.catalog.resolve()).card.context_window is not None


async def test_protocol_7_the_model_of_the_environment_is_the_providers(tmp_path: Path) -> None:
    environ = {"ANTHROPIC_API_KEY": "sk-0123456789", "ANTHROPIC_MODEL": "claude-haiku-4-5-20251001"}
    bench = Bench(tmp_path, environ)
    model = await bench.catalog.resolve()
    assert model.card.model_id == "anthropic/claude-haiku-4-5-20251001"
    assert model.card.context_window == 200_000


async def test_protocol_7_callboard_model_picks_one_of_several(tmp_path: Path) -> None:
    environ = {
        "OPENAI_API_KEY": "sk-0123456789",
        "ANTHROPIC_API_KEY": "sk-0123456789",
        "CALLBOARD_MODEL": "anthropic/some-new-model",
    }
    bench = Bench(tmp_path, environ)
    assert (await bench.catalog.selected()).source == "the environment variable CALLBOARD_MODEL"
    card = (await bench.catalog.resolve()).card
    assert (card.model_id, card.context_window) == ("anthropic/some-new-model", None)


async def test_the_resolved_setting_goes_before_the_variable(tmp_path: Path) -> None:
    environ = {"CALLBOARD_MODEL": "openai/x"}
    bench = Bench(tmp_path, environ, model="scripted/demo", model_source="the client")
    selection = await bench.catalog.selected()
    assert (selection.model_id, selection.source) == ("scripted/demo", "the client")


async def test_a_key_in_the_file_counts_as_well(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('anthropic = "sk-0123456789"')
    path.chmod(0o600)
    selection = await Bench(tmp_path).catalog.selected()
    assert selection.model_id.startswith("anthropic/")
    assert str(path) in selection.source


class Ring:
    """A keyring with one password."""

    def __init__(self) -> None:
        self.threads: set[int] = set()

    def get_password(self, service_name: str, username: str) -> str | None:
        self.threads.add(threading.get_ident())
        return "sk-0123456789" if (service_name, username) == ("callboard", "anthropic") else None


async def test_the_keyring_is_asked_in_a_thread_of_its_own(tmp_path: Path) -> None:
    ring = Ring()
    keys = KeyRing({}, tmp_path, lambda: ring)
    catalog = ModelCatalog(ModelSettings(), keys, HttpClient(), {}, Prober(OLLAMA))
    selection = await catalog.selected()
    assert selection.model_id.startswith("anthropic/")
    assert "keyring" in selection.source
    assert threading.get_ident() not in ring.threads


async def test_limits_of_time_reach_the_adapter(tmp_path: Path) -> None:
    async with HttpFake(Reply(end="silent")) as fake:
        tables = {"mine": {"base_url": f"{fake.url}/v1"}}
        http = HttpClient()
        catalog = ModelCatalog(
            ModelSettings(providers=tables),
            KeyRing({}, tmp_path, lambda: None),
            http,
            {},
            Prober(),
            timeouts=Timeouts(first_byte_s=0.05),
        )
        with pytest.raises(ModelError, match=r"sent nothing for 0\.05 s"):
            await answer(await catalog.resolve("mine/m"))
        await http.aclose()


async def test_a_local_server_is_used_when_there_is_no_key(tmp_path: Path) -> None:
    empty = LocalServer(provider="llamacpp", title="x", base_url="http://127.0.0.1:8/v1", models=())
    bench = Bench(tmp_path, prober=Prober(empty, OLLAMA))
    selection = await bench.catalog.selected()
    assert selection.model_id == "ollama/qwen3:8b"
    assert "Ollama" in selection.source
    card = (await bench.catalog.resolve()).card
    assert (card.provider, card.text_tool_calls) == ("ollama", True)


async def test_local_servers_are_not_looked_for_when_that_is_switched_off(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prober=Prober(OLLAMA), probe_local=False)
    assert (await bench.catalog.selected()).model_id == "scripted/demo"
    assert bench.prober.times == 0


async def test_what_answered_is_remembered_for_a_while(tmp_path: Path) -> None:
    bench = Bench(tmp_path, prober=Prober(OLLAMA))
    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(bench.catalog.selected)
    assert bench.prober.times == 1
    bench.now += 61
    await bench.catalog.selected()
    assert bench.prober.times == 2
    bench.catalog.refresh()
    await bench.catalog.selected()
    assert bench.prober.times == 3


# --- base URLs and keys -----------------------------------------------------------------------


def compatible(request: Request) -> Reply:
    """A server of the OpenAI kind that speaks Chat Completions and nothing else."""
    match request.method, request.path:
        case "GET", "/v1/models":
            return json_reply({"object": "list", "data": [{"id": "first"}, {"id": "second"}]})
        case "POST", "/v1/chat/completions":
            chunk = (
                b'data: {"choices":[{"index":0,"delta":{"content":"hello"},"finish_reason":null}]}\n\n'
                b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
                b"data: [DONE]\n\n"
            )
            return Reply(chunks=(chunk,))
        case _:
            return json_reply({"error": {"message": "no such path"}}, status=404)


async def test_a_base_url_of_another_server_means_chat_completions(tmp_path: Path) -> None:
    async with HttpFake(answer=compatible) as fake:
        environ = {
            "OPENAI_BASE_URL": f"{fake.url}/v1",
            "OPENAI_API_KEY": "sk-theirs-01234",
            "OPENAI_MODEL": "second",
        }
        bench = Bench(tmp_path, environ)
        model = await bench.catalog.resolve()
        assert model.card.model_id == "openai/second"
        assert await answer(model) == "hello"
        assert fake.requests[-1].headers["authorization"] == "Bearer sk-theirs-01234"
        await bench.http.aclose()


async def test_without_a_named_model_the_server_is_asked_what_it_has(tmp_path: Path) -> None:
    async with HttpFake(answer=compatible) as fake:
        bench = Bench(tmp_path, {"OPENAI_BASE_URL": f"{fake.url}/v1"})
        selection = await bench.catalog.selected()
        assert selection.model_id == "openai/first"
        assert "OPENAI_BASE_URL" in selection.source
        await bench.catalog.selected()
        assert len(fake.requests) == 1
        assert "authorization" not in fake.requests[0].headers
        await bench.http.aclose()


async def test_a_key_is_sent_to_its_own_provider_only(tmp_path: Path) -> None:
    environ = {"OPENAI_API_KEY": "sk-of-openai-0123", "ANTHROPIC_API_KEY": "sk-of-anthropic-0123"}
    async with HttpFake(answer=compatible) as fake:
        tables = {"mine": {"base_url": f"{fake.url}/v1", "models": ["m"]}}
        prober = Prober(
            LocalServer(provider="ollama", title="O", base_url=f"{fake.url}/v1", models=("q",))
        )
        bench = Bench(tmp_path, environ, prober, providers=tables)
        await bench.catalog.list()
        for model_id in ("mine/m", "ollama/q"):
            assert await answer(await bench.catalog.resolve(model_id)) == "hello"
        for request in fake.requests:
            assert "sk-of" not in str(request.headers)
        await bench.http.aclose()


async def test_an_anthropic_base_url_is_asked_in_its_own_format(tmp_path: Path) -> None:
    async with HttpFake(Reply(chunks=(ANTHROPIC_STREAM,))) as fake:
        environ = {
            "ANTHROPIC_BASE_URL": fake.url,
            "ANTHROPIC_API_KEY": "sk-ant-012345",
            "ANTHROPIC_MODEL": "claude-x",
        }
        bench = Bench(tmp_path, environ)
        assert "Grüße" in await answer(await bench.catalog.resolve())
        assert fake.requests[0].path == "/v1/messages"
        assert fake.requests[0].headers["x-api-key"] == "sk-ant-012345"
        await bench.http.aclose()


@pytest.mark.parametrize(
    "url",
    [
        "ftp://host/v1",
        "file:///etc/passwd",
        "host:8080",
        "http://",
        "http://user:hunter22@host/v1",
        "http://host/v1?key=hunter22",
        "http://ho st/",
        "http://host:99999999/",
    ],
)
async def test_a_base_url_that_is_none_is_told_without_its_secrets(
    tmp_path: Path, url: str
) -> None:
    bench = Bench(tmp_path, {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "sk-0123456789"})
    error = await refusal(bench.catalog, "openai/x")
    assert (error.kind, error.data) == ("modelUnavailable", {"reason": "badConfiguration"})
    assert "OPENAI_BASE_URL" in error.message
    assert "hunter22" not in error.message
    selection = await bench.catalog.selected()
    assert selection.model_id == "scripted/demo"
    assert "OPENAI_BASE_URL" in selection.source


async def test_a_missing_key_is_told_with_the_ways_out(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    error = await refusal(bench.catalog, "openai/gpt-5")
    assert error.kind == "authRequired"
    assert "OPENAI_API_KEY" in error.message
    assert "keys.toml" in error.message


async def test_a_key_file_that_others_can_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "keys.toml"
    path.write_text('openai = "sk-0123456789"')
    path.chmod(0o644)
    bench = Bench(tmp_path)
    assert "chmod 600" in (await refusal(bench.catalog, None)).message
    assert "chmod 600" in str((await bench.infos())["openai/gpt-5.4"].reason)
    assert isinstance(await bench.catalog.resolve("scripted/demo"), Scripted)


# --- configured providers ---------------------------------------------------------------------

TABLE: dict[str, Any] = {
    "api": "openai_chat",
    "base_url": "https://example.test/api/v1",
    "key_env": "ROUTER_KEY",
    "headers": {"X-Title": "Callboard", "X-Secret-Token": "very-secret-value"},
    "models": [
        {
            "name": "qwen/qwen3-coder",
            "context_window": 262144,
            "max_output_tokens": 65536,
            "supports_images": True,
            "text_tool_calls": True,
            "price": {"input": 0.2, "output": 0.8, "currency": "EUR"},
        },
        "other",
    ],
}


async def test_a_configured_provider_is_used_as_its_table_says(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        {"ROUTER_KEY": "rk-0123456789", "OPENAI_API_KEY": "sk-0123456789"},
        providers={"router": TABLE},
    )
    assert (await bench.catalog.selected()).model_id == "router/qwen/qwen3-coder"
    card = (await bench.catalog.resolve()).card
    assert (card.context_window, card.max_output_tokens) == (262144, 65536)
    assert (card.supports_images, card.text_tool_calls) == (True, True)
    assert card.price == Price(input=0.2, output=0.8, currency="EUR")
    assert (await bench.catalog.resolve("router/not-listed")).card.context_window is None
    assert "very-secret-value" in bench.keys.secrets()
    assert "Callboard" not in bench.keys.secrets()


async def test_a_configured_provider_without_its_key_gives_way_to_one_that_has_its_key(
    tmp_path: Path,
) -> None:
    tables = {"keyless": {"base_url": "http://10.0.0.1/v1", "models": ["m"]}, "router": TABLE}
    bench = Bench(tmp_path, {"OPENAI_API_KEY": "sk-0123456789"}, providers=tables)
    assert (await bench.catalog.selected()).model_id.startswith("openai/")
    assert (await Bench(tmp_path, providers=tables).catalog.selected()).model_id == "keyless/m"
    assert (await refusal(bench.catalog, "router/other")).kind == "authRequired"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({}, "base_url"),
        ({"base_url": "gopher://x"}, "base_url"),
        ({"base_url": 7}, "base_url"),
        ({"base_url": "http://x/v1", "api": "soap"}, "api must be one of"),
        ({"base_url": "http://x/v1", "model": "x"}, "model is not known"),
        ({"base_url": "http://x/v1", "models": "x"}, "models must be a list"),
        ({"base_url": "http://x/v1", "models": [{}]}, r"models\[0\] needs a name"),
        (
            {"base_url": "http://x/v1", "models": [{"name": "a", "context_window": "1"}]},
            "context_window",
        ),
        (
            {"base_url": "http://x/v1", "models": [{"name": "a", "price": {"inputs": 1}}]},
            "price.inputs",
        ),
        ({"base_url": "http://x/v1", "headers": {"a": 1}}, "headers.a"),
        ("text", "table"),
    ],
)
async def test_a_table_that_is_wrong_disables_its_provider_alone(
    tmp_path: Path, table: Any, words: str
) -> None:
    bench = Bench(tmp_path, {"OPENAI_API_KEY": "sk-0123456789"}, providers={"bad": table})
    error = await refusal(bench.catalog, "bad/x")
    assert (error.kind, error.data) == ("modelUnavailable", {"reason": "badConfiguration"})
    with pytest.raises(CallboardError, match=words):
        raise error
    assert (await bench.catalog.selected()).model_id.startswith("openai/")


# --- names ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "reason", "words"),
    [
        ("gpt-5", "badName", "provider/name"),
        ("", "badName", "provider/name"),
        ("openai/", "badName", "provider/name"),
        ("/x", "badName", "provider/name"),
        ("nobody/x", "unknownProvider", "openai, anthropic"),
        ("scripted/no/such/file.yaml", "badScenario", "no scenario"),
        ("scripted//\x00", "badScenario", "no scenario"),
    ],
)
async def test_a_name_that_leads_nowhere_is_told_with_the_way_out(
    tmp_path: Path, model_id: str, reason: str, words: str
) -> None:
    error = await refusal(Bench(tmp_path).catalog, model_id)
    assert (error.kind, error.data) == ("modelUnavailable", {"reason": reason})
    assert words in error.message
    assert error.message.isprintable()


async def test_a_wanted_model_that_cannot_be_is_an_error_and_no_other_model(tmp_path: Path) -> None:
    bench = Bench(tmp_path, {"CALLBOARD_MODEL": "nobody/x", "OPENAI_API_KEY": "sk-0123456789"})
    with pytest.raises(CallboardError, match="CALLBOARD_MODEL"):
        await bench.catalog.selected()
    info = (await bench.infos())["nobody/x"]
    assert (info.available, info.selected) == (False, True)
    assert "unknown provider" in str(info.reason)


async def test_a_scenario_by_its_path_keeps_its_counts_until_the_file_changes(
    tmp_path: Path,
) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("rules: [{answer: first, times: 1}]\ndefault: later")
    bench = Bench(tmp_path, {"CALLBOARD_MODEL": f"scripted/{path}"})
    assert (await bench.catalog.selected()).model_id == f"scripted/{path}"
    answers = [await answer(await bench.catalog.resolve()) for _ in range(2)]
    assert answers == ["first", "later"]
    path.write_text("default: a new scenario altogether")
    assert await answer(await bench.catalog.resolve()) == "a new scenario altogether"
    path.write_text("nonsense: 1")
    error = await refusal(bench.catalog, None)
    assert "nonsense" in error.message
    assert error.data == {"reason": "badScenario"}


# --- the list ---------------------------------------------------------------------------------


async def test_the_list_tells_what_can_be_used_and_why_the_rest_cannot(tmp_path: Path) -> None:
    bench = Bench(
        tmp_path,
        {"ANTHROPIC_API_KEY": "sk-0123456789"},
        Prober(OLLAMA),
        providers={"router": TABLE},
    )
    infos = await bench.infos()
    usable = {model_id for model_id, info in infos.items() if info.available}
    assert usable == {"anthropic/claude-sonnet-5", "ollama/qwen3:8b", "ollama/b", "scripted/demo"}
    assert "OPENAI_API_KEY" in str(infos["openai/gpt-5.4"].reason)
    assert "ROUTER_KEY" in str(infos["router/qwen/qwen3-coder"].reason)
    chosen = [info for info in infos.values() if info.selected]
    assert [info.model_id for info in chosen] == ["anthropic/claude-sonnet-5"]
    assert "ANTHROPIC_API_KEY" in str(chosen[0].source)
    assert "sk-0123456789" not in str(infos)


async def test_the_selected_model_is_always_in_the_list(tmp_path: Path) -> None:
    for wanted in ("anthropic/brand-new", f"scripted/{tmp_path}/none.yaml"):
        info = (await Bench(tmp_path, model=wanted).infos())[wanted]
        assert info.selected
        assert not info.available
        assert info.reason


# --- discovery --------------------------------------------------------------------------------


def candidate(url: str, *, tags: bool = False, provider: str = "ollama") -> Candidate:
    return Candidate(provider=provider, title="T", base_url=f"{url}/v1", tags=tags)


async def found(*candidates: Candidate, timeout_s: float = 10) -> list[tuple[str, tuple[str, ...]]]:
    http = HttpClient()
    servers = await discover(http, candidates, timeout_s)
    await http.aclose()
    return [(server.provider, server.models) for server in servers]


async def test_discovery_lists_chat_models_of_whoever_answers_in_the_order_of_the_candidates() -> (
    None
):
    models = {
        "data": [{"id": "nomic-embed-text"}, {"id": "qwen3"}, {"id": "qwen3"}, {"id": "a\nb"}]
    }
    async with HttpFake(json_reply(models)) as one, HttpFake(answer=compatible) as two:
        assert await found(candidate(two.url, provider="b"), candidate(one.url, provider="a")) == [
            ("b", ("first", "second")),
            ("a", ("qwen3",)),
        ]


async def test_discovery_takes_ollamas_own_list_where_the_common_one_is_missing() -> None:
    def old(request: Request) -> Reply:
        if request.path == "/api/tags":
            return json_reply({"models": [{"name": "llama3:8b"}]})
        return json_reply({"error": "404 page not found"}, status=404)

    async with HttpFake(answer=old) as fake:
        assert await found(candidate(fake.url, tags=True)) == [("ollama", ("llama3:8b",))]
        assert await found(candidate(fake.url)) == []


@pytest.mark.parametrize(
    "reply",
    [
        json_reply({"hello": "world"}),
        json_reply([1, 2]),
        json_reply({"data": [{"name": "x"}]}),
        json_reply({"data": "x"}),
        json_reply({"data": [{"id": "x"}]}, status=500),
        Reply(headers={"content-type": "text/html"}, chunks=(b"<html>It works</html>",)),
        Reply(end="slam"),
    ],
)
async def test_discovery_takes_no_other_program_for_a_model_server(reply: Reply) -> None:
    async with HttpFake(reply) as fake:
        assert await found(candidate(fake.url, tags=True)) == []


async def test_discovery_tells_a_server_without_models_from_no_server() -> None:
    async with HttpFake(json_reply({"object": "list", "data": []})) as fake:
        assert await found(candidate(fake.url)) == [("ollama", ())]
        url = fake.url
    assert await found(candidate(url)) == []


async def test_discovery_waits_for_nobody_who_says_nothing() -> None:
    async with HttpFake(Reply(end="silent")) as mute, HttpFake(answer=compatible) as fake:
        servers = await found(
            candidate(mute.url, provider="mute"), candidate(fake.url), timeout_s=1
        )
    assert servers == [("ollama", ("first", "second"))]


# --- costs ------------------------------------------------------------------------------------


def test_importing_the_catalog_imports_no_adapter_and_no_http_client() -> None:
    code = (
        "import sys, callboard.models.catalog\n"
        "print([m for m in sys.modules if m in ('httpx', 'yaml', 'keyring', 'callboard.models.http')"
        " or m.startswith(('callboard.models.anthropic', 'callboard.models.openai',"
        " 'callboard.models.scrip'))])"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
