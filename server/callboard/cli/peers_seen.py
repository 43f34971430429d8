"""What happens between linked sessions, a line for each thing; what another one says looks like nothing that the
person has said."""

from rich.text import Text

from callboard.peers.frame import said_in
from callboard_rpc.common import TextContent
from callboard_rpc.events import (
    Event,
    Message,
    PeerLinked,
    PeerMessageDropped,
    PeerMessageSent,
    PeerUnlinked,
)

from .terminal import line
from .wording import plural


def tell(event: Event) -> Text | None:
    """The line for an event, where it tells of a linked session."""
    match event.data:
        case Message(author=author) as message if author.kind == "peer":
            texts = [b.text for b in message.content if isinstance(b, TextContent)]
            whom = (
                author.name if author.id in (None, author.name) else f"{author.name} ({author.id})"
            )
            return line((f"⇄ {whom}: ", "magenta"), *(said_in(text) for text in texts))
        case PeerMessageSent(to=to, text=text):
            return line((f"⇄ to {to}: ", "magenta"), text)
        case PeerLinked(peer_id=peer_id):
            return line((f"⇄ linked to session {peer_id}", "dim"))
        case PeerUnlinked(peer_id=peer_id, dropped=dropped):
            gone = f"; {plural(len(dropped), 'message')} not delivered" if dropped else ""
            return line((f"⇄ no longer linked to session {peer_id}{gone}", "dim"))
        case PeerMessageDropped(sender=sender, reason=reason):
            return line((f"⇄ a message of {sender or 'a session'} was dropped: {reason}", "yellow"))
        case _:
            return None
