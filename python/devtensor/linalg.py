# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Linear algebra: the operators linalg_NAME as linalg.NAME, on batches of matrices in the last two dimensions."""
from devtensor import _C

_names = [name for name in dir(_C) if name.startswith('linalg_') and not name.endswith('_')]
for _name in _names:
    globals()[_name[len('linalg_'):]] = getattr(_C, _name)
LinAlgError = RuntimeError
__all__ = [name[len('linalg_'):] for name in _names] + ['LinAlgError']
