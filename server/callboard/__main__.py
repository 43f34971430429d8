"""``python -m callboard`` is the command ``callboard``."""

import sys

from callboard.cli import main

if __name__ == "__main__":
    sys.exit(main())
