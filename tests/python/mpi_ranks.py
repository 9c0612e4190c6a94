# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""One of two ranks that mpirun has started (tests/run-mpi): functions of test_distributed.py with the engine mpi."""
import test_distributed as tests

import devtensor as dt
from devtensor import distributed

with distributed.init(timeout=60) as group:
    assert tests.collectives(group) == 'mpi'
    tests.errors(group)
    found, _ = tests.trains(group)
    assert tests.close_to([dt.tensor(p, dtype=dt.float64) for p in found], tests.alone())
    print(f'rank {group.rank} of {group.size} done', flush=True)
