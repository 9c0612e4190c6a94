# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Libraries that support the array API standard recognise the tensors: one real function of each, where it is
installed."""
import os
import subprocess
import sys

import pytest

import devtensor as dt
import devtensor.array_api as xp


def test_array_api_compat_finds_the_namespace():
    compat = pytest.importorskip('array_api_compat')
    x = dt.ones(3)
    assert compat.is_array_api_obj(x) and compat.array_namespace(x, xp.ones(2)) is xp
    assert compat.size(x) == 3 and compat.device(x) == 'cpu'


SCIPY = """
import devtensor as dt, devtensor.array_api as xp
from scipy import stats
result = stats.gmean(xp.asarray([1.0, 2.0, 4.0, 8.0], dtype=xp.float64))
assert isinstance(result, dt.Tensor), type(result)
assert abs(float(result) - 2.8284271247461903) < 1e-12, result
"""
SCIKIT_LEARN = """
import sklearn, devtensor as dt, devtensor.array_api as xp
from sklearn.metrics import accuracy_score
from sklearn.preprocessing import MinMaxScaler
with sklearn.config_context(array_api_dispatch=True):
    assert accuracy_score(xp.asarray([0, 1, 2, 2]), xp.asarray([0, 1, 1, 2])) == 0.75
    scaled = MinMaxScaler().fit_transform(xp.asarray([[0.0, 1.0], [2.0, 3.0], [4.0, 7.0]]))
    assert isinstance(scaled, dt.Tensor) and scaled[1, 0].item() == 0.5
"""


@pytest.mark.parametrize('module, version, program', [('scipy', '1.15', SCIPY), ('sklearn', '1.6', SCIKIT_LEARN)])
def test_a_library_computes_with_arrays(module, version, program):
    pytest.importorskip(module, version)
    # scipy reads the variable when it is imported.
    subprocess.run([sys.executable, '-c', program], env={**os.environ, 'SCIPY_ARRAY_API': '1'}, check=True)


def test_einops_rearranges_arrays():
    pytest.importorskip('einops')
    from einops import array_api as einops
    x = xp.reshape(xp.arange(24), (2, 3, 4))
    y = einops.rearrange(x, 'a b c -> c (a b)')
    assert isinstance(y, dt.Tensor) and y.shape == (4, 6) and y[1, 5].item() == x[1, 2, 1].item()
