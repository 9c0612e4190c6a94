# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The programs peer_*.py, which compare the package with PyTorch, run where PyTorch is installed."""
import importlib.util
import os
import subprocess
import sys

import pytest

import devtensor as dt

HERE = os.path.dirname(os.path.abspath(__file__))


def peer_python():
    """An interpreter that has PyTorch; skips the test if there is none."""
    if importlib.util.find_spec('torch'):
        return sys.executable
    peers = os.path.join(HERE, '..', '..', 'bench', 'peers')
    found = os.path.exists(peers) and subprocess.run([peers, 'python'], capture_output=True, text=True)
    if not found or found.returncode:
        pytest.skip('PyTorch is not there: make bench-peers')
    return found.stdout.strip()


def check_peer(program):
    """Runs a program, which fails if anything differs, with this package and an interpreter that has PyTorch."""
    env = dict(os.environ, PYTHONPATH=os.path.dirname(os.path.dirname(dt.__file__)))
    run = subprocess.run([peer_python(), '-W', 'ignore', os.path.join(HERE, program)],
                         capture_output=True, text=True, env=env)
    assert run.returncode == 0, run.stdout + run.stderr[-2000:]
