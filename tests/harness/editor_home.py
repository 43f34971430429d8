"""What an editor under test has to itself: a home, a workspace, a store, a model and the logs of all that."""

import os
from collections.abc import Container, Iterator
from pathlib import Path


class EditorHome:
    """Folders below `folder`, made as they are needed.

    The workspace and the store are `folder`'s own unless others are named, as where two editors share
    them. `scenario` is what the scripted model plays, `model` a model id in its place.
    """

    def __init__(
        self,
        folder: Path,
        *,
        scenario: str | None = None,
        model: str | None = None,
        store: Path | None = None,
        workspace: Path | None = None,
    ) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.workspace = workspace or folder / "workspace"
        self.workspace.mkdir(parents=True, exist_ok=True)
        self.store = store or folder / "store" / "callboard.db"
        folder.mkdir(parents=True, exist_ok=True)
        if scenario is not None:
            assert model is None, "a scenario is a model"
            path = folder / "scenario.yaml"
            path.write_text(scenario, "utf-8")
            model = f"scripted/{path}"
        self.model = model

    def environ(self, **folders: Path) -> dict[str, str]:
        """All of it, for the editor and its server; `folders` name others than the usual ones."""
        config = {"CALLBOARD_CONFIG_DIR": self.home / "config" / "callboard"}
        return {
            **private_environ(self.home, **config, **folders),
            "CALLBOARD_STORE": str(self.store),
            **({"CALLBOARD_MODEL": self.model} if self.model else {}),
        }

    def logs(self, *more: Path, but: Container[str] = ()) -> Iterator[str]:
        """The ends of all logs below the folder and beside the store, and of `more`, as lines; `but` are
        names of logs that tell nothing."""
        paths = {*self.folder.rglob("*.log"), *self.store.parent.glob("*.log"), *more}
        for path in sorted(path for path in paths if path.exists() and path.name not in but):
            if lines := path.read_text(errors="replace").splitlines()[-40:]:
                yield f"--- {path}"
                yield from lines


def private_environ(home: Path, **more: Path) -> dict[str, str]:
    """An environment in which every folder of a person's is below `home` and exists; of the tests' own
    nothing gets through but PATH. `more` are further folders, or others, by their variables."""
    folders = {
        "HOME": home,
        **{
            f"XDG_{kind}_HOME": home / kind.lower() for kind in ("CONFIG", "DATA", "STATE", "CACHE")
        },
        "XDG_RUNTIME_DIR": home / "run",
        **more,
    }
    for folder in folders.values():
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    paths = {name: str(folder) for name, folder in folders.items()}
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **paths}
