"""What kind of file system a store would lie on. SQLite's WAL needs shared memory and honest locks."""

import re
import sys
from pathlib import Path

from callboard_rpc.errors import CallboardError

_ESCAPE = re.compile(r"\\([0-7]{3})")
"""How the kernel writes blanks and backslashes; other characters stand as they are."""

NETWORK_TYPES = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb3", "smbfs", "afs", "ceph", "glusterfs", "lustre", "9p",
        "beegfs", "gpfs", "ocfs2", "gfs2", "davfs", "fuse.sshfs", "fuse.glusterfs", "fuse.davfs2",
        "fuse.rclone", "fuse.s3fs", "ncpfs", "coda", "orangefs",
    }
)  # fmt: skip


def type_of(path: Path, mounts: str | None = None) -> str | None:
    """The file system type under `path`, or None when this system does not tell.

    `mounts` is the text of ``/proc/self/mountinfo``; given by tests.
    """
    if mounts is None:
        if not sys.platform.startswith("linux"):
            return None
        try:
            mounts = Path("/proc/self/mountinfo").read_text("utf-8", "replace")
        except OSError:
            return None
    best: tuple[int, str] | None = None
    resolved = path.resolve()
    for line in mounts.splitlines():
        before, separator, after = line.partition(" - ")
        fields = before.split()
        if not separator or len(fields) < 5:
            continue
        mount_point = Path(_ESCAPE.sub(lambda m: chr(int(m[1], 8)), fields[4]))
        if resolved.is_relative_to(mount_point):
            depth = len(mount_point.parts)
            if best is None or depth >= best[0]:
                best = (depth, after.split()[0])
    return best[1] if best else None


def real(path: Path) -> Path:
    """The one name of a file or folder, whatever links lead to it, be it there or not. Raises
    storeUnsupported for a link that leads to itself."""
    try:
        return path.expanduser().absolute().resolve()
    except (OSError, RuntimeError) as fault:  # RuntimeError: a home that nobody knows, or a loop
        raise CallboardError(
            "storeUnsupported",
            f"{path} leads nowhere: it is a link to itself, or a home folder that is not known; "
            "name another file, or remove the link",
            data={"path": str(path)},
        ) from fault


def is_network(kind: str | None) -> bool:
    """Whether a store on this type would not be safe."""
    return kind in NETWORK_TYPES
