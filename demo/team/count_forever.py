"""Measures how long counting to infinity takes."""

import itertools
import time

for number in itertools.count():
    print(number, flush=True)
    time.sleep(0.2)
