"""Which models there are, which one is used, and why.

Without any configuration: the provider whose key is found, else a server that answers on this machine,
else the scripted demo. The choice always comes with its reason. Adapters, and with them the HTTP client,
are imported when the first model of their kind is asked for.

Invariant: a key goes to the provider it was found for, at that provider's base URL, and nowhere else.
"""

import time
from collections.abc import Awaitable, Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import anyio
import anyio.to_thread
from attrs import evolve, field, frozen

from callboard.models.base import Model, ModelCard, ModelError
from callboard.models.builtin import LOCAL, OPENAI_MODEL, SCRIPTED, all_providers
from callboard.models.cards import card_of
from callboard.models.failures import is_secret_header
from callboard.models.providers import Provider, default_key_env
from callboard_rpc.common import Failure
from callboard_rpc.errors import CallboardError
from callboard_rpc.server import ModelInfo

if TYPE_CHECKING:
    from callboard.models.discovery import LocalServer
    from callboard.models.http import HttpClient, Timeouts
    from callboard.models.keys import ApiKey, KeyRing

DEMO_ID = "scripted/demo"

_LOCAL_TTL_S = 60.0
_KEYRING_S = 5.0
_LISTED = 50

Probe = Callable[[], Awaitable[tuple["LocalServer", ...]]]


@frozen(kw_only=True)
class ModelSettings:
    """What the configuration says of models.

    `model` is the wanted one (``provider/name``) over all layers of the configuration, the environment
    (``CALLBOARD_MODEL``) included, and `model_source` says in words who wanted it; the catalogue looks
    at ``CALLBOARD_MODEL`` itself only when `model` is None. `providers` are the tables
    ``[providers.NAME]`` as they stand in the file (see `providers`). `probe_local=False`: do not look
    for servers on this machine.
    """

    model: str | None = None
    model_source: str = "the configuration"
    providers: Mapping[str, Any] = field(factory=dict[str, Any], repr=False)
    probe_local: bool = True


@frozen(kw_only=True)
class Selection:
    """The model that a new session gets. `source` says why it is this one, for a person."""

    model_id: str
    source: str


class ModelCatalog:
    """Resolves model ids. `probe` finds servers on this machine; `clock` is monotonic, in seconds.
    `timeouts` are those of every request to a model; None means the defaults.

    A model is made once and kept, so what it remembers (a scenario's counts, what a server refuses)
    holds for the life of the catalogue.
    """

    def __init__(
        self,
        settings: ModelSettings,
        keys: "KeyRing",
        http: "HttpClient",
        environ: Mapping[str, str],
        probe: Probe | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        timeouts: "Timeouts | None" = None,
    ) -> None:
        self._settings = settings
        self._keys = keys
        self._http = http
        self._environ = environ
        self._probe = probe
        self._clock = clock
        self._timeouts = timeouts
        self._providers = all_providers(settings.providers, environ)
        self._models: dict[object, Model] = {}
        self._listed: dict[str, str] = {}
        self._local: tuple[float, tuple[LocalServer, ...]] | None = None
        self._probing = anyio.Lock()
        for provider in self._providers.values():
            self._remember_secrets(provider)

    async def selected(self) -> Selection:
        """The model that is used when none is named, and why.

        Raises `CallboardError` (modelUnavailable) when the one that was asked for cannot be.
        """
        wanted = self._wanted()
        if wanted is not None:
            self._split(wanted.model_id, wanted.source)
            return wanted
        usable = [each for each in self._candidates() if each.problem is None]
        keyed = [(await self._key(provider), provider) for provider in usable]
        # Stable: whoever has a key goes before those that may do without.
        for key, provider in sorted(keyed, key=lambda pair: pair[0] is None):
            found = await self._choose(provider, key)
            if found is not None:
                return found
        for server in await self._servers():
            if server.models:
                return Selection(
                    model_id=f"{server.provider}/{server.models[0]}",
                    source=f"{server.title} answers on this machine, and no API key was found",
                )
        problems = [each.problem for each in self._candidates() if each.problem is not None]
        why = "no API key was found ('callboard login' stores one), and no model server answers on this machine"
        return Selection(model_id=DEMO_ID, source="; ".join((why, *problems)))

    async def resolve(self, model_id: str | None = None, *, text_tool_calls: bool = False) -> Model:
        """The model `model_id`, or the selected one. `text_tool_calls`: it writes tool calls as text,
        whatever its card says.

        Raises `CallboardError`: modelUnavailable with the ``reason`` badName, unknownProvider,
        badConfiguration or badScenario; authRequired when its key is missing.
        """
        self.look_at_keys()
        if model_id is None:
            model_id = (await self.selected()).model_id
        provider_name, name = self._split(model_id)
        if provider_name == SCRIPTED:
            return self._scripted(name)
        provider = self._usable(provider_name)
        if await self._key(provider) is None and provider.needs_key:
            raise CallboardError("authRequired", _no_key(provider, self._keys.path))
        card = card_of(provider, name)
        if text_tool_calls:
            card = evolve(card, text_tool_calls=True)
        kept = (model_id, provider.base_url, card.text_tool_calls)
        model = self._models.get(kept)
        if model is None:
            model = self._models[kept] = self._make(provider, card)
        return model

    def warm(self) -> None:
        """Loads the code that the first request to the configured model will need. It takes a tenth
        of a second and changes nothing else, so it is for a thread, while nobody waits."""
        wanted = self._wanted()
        name = "" if wanted is None else wanted.model_id.partition("/")[0]
        if name == SCRIPTED:
            import_module("callboard.models.scenario_file")
            import_module("callboard.models.scripted")
            return
        import_module("callboard.models.http").load()
        provider = self._providers.get(name)
        import_module(f"callboard.models.{provider.api if provider else 'openai_chat'}")

    async def list(self) -> tuple[ModelInfo, ...]:
        """Every model that is known by name, and why those cannot be used that cannot."""
        chosen, problem = None, None
        try:
            chosen = await self.selected()
        except CallboardError as error:
            problem = error.message
        infos: dict[str, ModelInfo] = {}
        for provider in self._providers.values():
            reason = await self._reason(provider)
            names = [entry.name for entry in provider.models]
            names += [name for name in (provider.default_model,) if name and name not in names]
            for name in names:
                info = _info(card_of(provider, name), source=provider.source, reason=reason)
                infos[info.model_id] = info
        for server in await self._servers():
            provider = self._providers[server.provider]
            for name in server.models[:_LISTED]:
                card = card_of(provider, name)
                source = f"{server.title} on this machine"
                infos.setdefault(card.model_id, _info(card, source=source))
        demo = _info(_scripted_card("demo"), source="built in")
        infos[demo.model_id] = demo
        if chosen is not None:
            known = infos.get(chosen.model_id) or await self._unlisted(chosen.model_id)
            infos[chosen.model_id] = evolve(known, selected=True, source=chosen.source)
        elif problem is not None and (wanted := self._wanted()) is not None:
            provider_name, _, name = wanted.model_id.partition("/")
            infos[wanted.model_id] = ModelInfo(
                model_id=wanted.model_id,
                provider=provider_name,
                name=name,
                available=False,
                selected=True,
                reason=problem,
                source=wanted.source,
            )
        return tuple(infos.values())

    def refresh(self) -> None:
        """Look for servers on this machine anew when next asked."""
        self._local = None

    def look_at_keys(self) -> None:
        """Has the keys that were written to the key file meanwhile known as secrets, whoever uses them."""
        self._keys.look()

    # --- which one ---------------------------------------------------------------------------

    def _remember_secrets(self, provider: Provider) -> None:
        # the key's variable may have a name that does not tell what it holds
        key = self._variable(provider.key_env) if provider.key_env is not None else None
        if key is not None:
            self._keys.remember(key)
        for name, value in provider.headers.items():
            if is_secret_header(name):
                self._keys.remember(value)
                for part in value.split():
                    self._keys.remember(part)

    def _variable(self, name: str) -> str | None:
        return self._environ.get(name, "").strip() or None

    def _wanted(self) -> Selection | None:
        named = self._variable("CALLBOARD_MODEL")
        if named is not None and self._settings.model in (None, named):
            return Selection(model_id=named, source="the environment variable CALLBOARD_MODEL")
        if not self._settings.model:
            return None
        return Selection(model_id=self._settings.model, source=self._settings.model_source)

    def _candidates(self) -> tuple[Provider, ...]:
        """The providers that may be chosen unasked: those of the configuration, then the well-known."""
        named = [name for name in self._settings.providers if name in self._providers]
        known = [name for name in ("openai", "anthropic") if name not in named]
        return tuple(self._providers[name] for name in (*named, *known))

    async def _choose(self, provider: Provider, key: "ApiKey | None") -> Selection | None:
        prefix = provider.name.upper()
        if key is not None:
            why = f"the key of {provider.name} was found in {key.source}"
        elif provider.needs_key:
            return None
        elif provider.name in self._settings.providers:
            why = provider.source
        elif self._variable(f"{prefix}_BASE_URL") is not None:
            why = f"the environment variable {prefix}_BASE_URL is set"
        else:
            return None
        name = provider.default_model or await self._first_model(provider, key)
        if name is None:
            return None
        if provider.default_model is None:
            why += f", and {name} is the first model there"
        return Selection(model_id=f"{provider.name}/{name}", source=why)

    async def _first_model(self, provider: Provider, key: "ApiKey | None") -> str | None:
        """What the provider itself lists first; None when it does not say. Remembered once known."""
        if provider.name not in self._listed:
            from callboard.models.discovery import first_model

            name = await first_model(self._http, provider, key.value if key else None)
            if name is None:
                return None
            self._listed[provider.name] = name
        return self._listed[provider.name]

    async def _servers(self) -> "tuple[LocalServer, ...]":
        if not self._settings.probe_local:
            return ()
        async with self._probing:
            if self._local is None or self._clock() - self._local[0] > _LOCAL_TTL_S:
                found = await (self._probe() if self._probe is not None else self._look())
                # A provider that the configuration describes is what it says, not what answers here.
                found = tuple(s for s in found if s.provider not in self._settings.providers)
                for server in found:
                    self._adopt(server)
                self._local = (self._clock(), found)
            return self._local[1]

    async def _look(self) -> "tuple[LocalServer, ...]":
        from callboard.models.discovery import discover

        return await discover(self._http)

    def _adopt(self, server: "LocalServer") -> None:
        known = self._providers.get(server.provider)
        if known is None or known.base_url != server.base_url:
            self._providers[server.provider] = Provider(
                name=server.provider,
                base_url=server.base_url,
                text_tool_calls=True,
                source=f"{server.title} on this machine",
            )

    # --- making one ---------------------------------------------------------------------------

    def _split(self, model_id: str, source: str | None = None) -> tuple[str, str]:
        """Provider and name of `model_id`. Raises `CallboardError` when it has no such parts."""
        provider, slash, name = model_id.partition("/")
        by = f" (from {source})" if source is not None else ""
        if not slash or not provider or not name.strip():
            _unavailable(
                "badName",
                f"the model {_shown(model_id)}{by} is not of the form provider/name, "
                f"such as openai/{OPENAI_MODEL} or {DEMO_ID}",
            )
        if provider != SCRIPTED and provider not in self._providers:
            known = ", ".join((*self._providers, SCRIPTED))
            _unavailable(
                "unknownProvider",
                f"the model {_shown(model_id)}{by} has an unknown provider; known are {known}; "
                f"describe it in a table [providers.{_shown(provider)}] of config.toml",
            )
        return provider, name

    def _usable(self, name: str) -> Provider:
        provider = self._providers[name]
        if provider.problem is not None:
            _unavailable("badConfiguration", provider.problem)
        return provider

    def _make(self, provider: Provider, card: ModelCard) -> Model:
        def key() -> str | None:
            try:
                return self._keys.value(provider.name, provider.key_env)
            except CallboardError as error:
                failure = Failure(kind=error.kind, message=error.message, provider=provider.name)
                raise ModelError(failure) from None

        match provider.api:
            case "anthropic":
                from callboard.models.anthropic import Anthropic as Adapter
            case "openai_responses":
                from callboard.models.openai_responses import OpenAIResponses as Adapter
            case "openai_chat":
                from callboard.models.openai_chat import OpenAIChat as Adapter
        from callboard.models.http import DEFAULT_TIMEOUTS

        timeouts = self._timeouts or DEFAULT_TIMEOUTS
        headers = dict(provider.headers)
        return Adapter(card, self._http, provider.base_url, key, headers, timeouts=timeouts)

    def _scripted(self, name: str) -> Model:
        from callboard.models.scenario import ScenarioError
        from callboard.models.scenario_file import BUILT_IN, built_in_scenario, load_scenario
        from callboard.models.scripted import Scripted

        stamp: tuple[object, ...] = (SCRIPTED, name)
        path = Path(name).expanduser()
        if name not in BUILT_IN:
            try:
                status = path.stat()
                stamp = (*stamp, status.st_mtime_ns, status.st_size)
            except (OSError, ValueError):
                _unavailable(
                    "badScenario",
                    f"there is no scenario {_shown(name)}; write scripted/ and the path of a YAML or "
                    f"TOML file, such as scripted//home/me/demo.yaml, or {DEMO_ID}",
                )
        model = self._models.get(stamp)
        if model is None:
            try:
                built_in = name in BUILT_IN
                scenario = built_in_scenario(name) if built_in else load_scenario(path)
            except ScenarioError as error:
                _unavailable("badScenario", f"the scenario cannot be used: {error}")
            model = self._models[stamp] = Scripted(_scripted_card(name), scenario)
        return model

    # --- keys and reasons ---------------------------------------------------------------------

    async def _key(self, provider: Provider) -> "ApiKey | None":
        found = self._keys.find(provider.name, provider.key_env)
        known = self._keys.was_asked(provider.name) or provider.name in LOCAL
        if found is not None or known:
            return found
        # The keyring may open a dialogue, or hang; the choice of a model does not wait for that.
        with anyio.move_on_after(_KEYRING_S):
            await anyio.to_thread.run_sync(
                self._keys.ask_keyring, provider.name, abandon_on_cancel=True
            )
        return self._keys.find(provider.name, provider.key_env)

    async def _reason(self, provider: Provider) -> str | None:
        """Why `provider` cannot be used; None when it can."""
        if provider.problem is not None:
            return provider.problem
        try:
            key = await self._key(provider)
        except CallboardError as error:
            return error.message
        return _no_key(provider, self._keys.path) if provider.needs_key and key is None else None

    async def _unlisted(self, model_id: str) -> ModelInfo:
        provider_name, name = self._split(model_id)
        if provider_name != SCRIPTED:
            provider = self._providers[provider_name]
            return _info(card_of(provider, name), reason=await self._reason(provider))
        try:
            self._scripted(name)
        except CallboardError as error:
            return _info(_scripted_card(name), reason=error.message)
        return _info(_scripted_card(name))


def _scripted_card(name: str) -> ModelCard:
    return ModelCard(model_id=f"{SCRIPTED}/{name}", provider=SCRIPTED, name=name)


def _info(card: ModelCard, *, source: str | None = None, reason: str | None = None) -> ModelInfo:
    return ModelInfo(
        model_id=card.model_id,
        provider=card.provider,
        name=card.name,
        available=reason is None,
        reason=reason,
        source=source,
        context_window=card.context_window,
        max_output_tokens=card.max_output_tokens,
        supports_tools=card.supports_tools,
        supports_images=card.supports_images,
    )


def _no_key(provider: Provider, file: Path) -> str:
    variable = provider.key_env or default_key_env(provider.name)
    return (
        f"{provider.name} needs an API key: run 'callboard login {provider.name}' in a terminal, or set {variable}, "
        f'or write {provider.name} = "key" into {file} (mode 0600), or choose another model'
    )


def _unavailable(reason: str, message: str) -> NoReturn:
    raise CallboardError("modelUnavailable", message, data={"reason": reason})


def _shown(text: str) -> str:
    """A name from outside, fit for a message."""
    plain = "".join(c if c.isprintable() else "?" for c in text)
    return plain if len(plain) <= 100 else plain[:99] + "…"
