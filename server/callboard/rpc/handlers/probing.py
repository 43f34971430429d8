"""``agent/probe``: whether the agent of a profile can be used."""

from pathlib import Path

from callboard_rpc.errors import CallboardError
from callboard_rpc.profiles import (
    AgentProbeParams,
    AgentProbeResult,
    ProbeCheck,
    ProbedChoice,
    ProbeStatus,
)
from callboard_rpc.server import ProfileInfo

from ...acp.client.probing import Probes
from ...acp.client.service import ExternalAgents
from ...host import Host
from ...sessions.profiles import Profile, ProfileBook
from ..call import Call, Handler
from ..pages import invalid, is_folder_name


def external_of(host: Host) -> ExternalAgents | None:
    """The agents of other makers, in a host that has any."""
    service = host.services.get("acp")
    return service if isinstance(service, ExternalAgents) else None


def handlers(host: Host) -> dict[str, Handler]:
    agents = external_of(host)
    probes = (
        None
        if agents is None
        else Probes(agents, host.environment.environ, redact=host.redactor.text, spawn=host.spawn)
    )

    async def probe(_: Call, params: AgentProbeParams) -> AgentProbeResult:
        profile = book_of(host, params.cwd).get(params.profile)
        if profile.kind == "acp" and probes is not None:
            return await probes.probe(profile)
        return await _model(host, profile)

    return {"agent/probe": probe}


def book_of(host: Host, cwd: str | None) -> ProfileBook:
    """The profiles in a folder, by default the server's own. Raises invalidParams for what is no folder's name."""
    if cwd is not None and not is_folder_name(cwd):
        raise invalid("$.cwd", "must be an absolute path")
    return host.profiles_for(cwd or str(Path.cwd()))


def infos(host: Host, book: ProfileBook) -> tuple[ProfileInfo, ...]:
    """What ``profile/list`` tells."""
    agents = external_of(host)
    return book.infos(None if agents is None else agents.standings.of)


async def _model(host: Host, profile: Profile) -> AgentProbeResult:
    """Whether the model that the profile would use can be."""
    status: ProbeStatus = "ready"
    models: tuple[ProbedChoice, ...] = ()
    try:
        selected = None if profile.model is not None else await host.catalog.selected()
        model_id = profile.model if selected is None else selected.model_id
        model = await host.catalog.resolve(model_id)
        name = model.card.model_id
        models = (ProbedChoice(id=name, name=model.card.name, current=True),)
        detail = name if selected is None else f"{name}: {selected.source}"
    except CallboardError as error:
        status = "needsAuth" if error.kind == "authRequired" else "error"
        detail = error.message
    ok = status == "ready"
    return AgentProbeResult(
        profile=profile.name,
        ok=ok,
        status=status,
        checks=(ProbeCheck(name="model", ok=ok, detail=detail),),
        models=models,
    )
