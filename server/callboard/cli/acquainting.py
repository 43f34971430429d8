"""Makes known, to what shows a session, whom and what its events will name."""

from callboard_client import Client
from callboard_rpc.common import SessionId

from .present import Presenter


async def acquaint(client: Client, presenter: Presenter, root_id: SessionId) -> None:
    """Gives `presenter` the names of the agents of a tree, who takes part in its session, and the titles of its
    tasks."""
    presenter.board.root = root_id
    if presenter.root == root_id:
        presenter.members = (await client.sessions.get(root_id)).session.members
    async for agent in client.agents.list(root_id):
        presenter.crew.add(agent)
    async for task in client.groups.tasks(root_id, "all"):
        presenter.board.add(task)
