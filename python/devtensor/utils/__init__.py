# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Data of training programs, and files of their state."""
from devtensor.utils import data  # noqa: F401
from devtensor.utils.state import load_state, save_state  # noqa: F401
