"""The rooms' tests borrow the puppets and the kit of the agents' ones."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1] / "agents"))
