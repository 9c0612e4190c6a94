# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Trainings from beginning to end: equal to PyTorch's, continued from files, and the examples."""
import os
import subprocess
import sys

import pytest

import devtensor as dt
from devtensor import nn

from peers import HERE, peer_python

ROOT = os.path.dirname(os.path.dirname(HERE))
PATH = dict(os.environ, PYTHONPATH=os.pathsep.join(
    [os.path.dirname(os.path.dirname(dt.__file__)), os.environ.get('PYTHONPATH', '')]))


def run(*command):
    result = subprocess.run(command, capture_output=True, text=True, env=PATH, cwd=ROOT)
    assert result.returncode == 0, result.stdout + result.stderr[-2000:]
    return result.stdout


@pytest.mark.parametrize('model', ['mlp', 'lenet', 'lstm', 'gpt'])
@pytest.mark.parametrize('dtype', ['f64', 'f32'])
def test_losses_of_20_steps_equal_pytorchs(model, dtype):
    out = run(peer_python(), '-W', 'ignore', os.path.join(HERE, 'peer_training.py'), model, dtype, '20')
    ours, rounding = map(float, out.split())
    # Losses in f32 may differ as much as PyTorch's own do if its weights change by one rounding.
    assert ours <= (1e-12 if dtype == 'f64' else max(1e-6, 4 * rounding))


def test_a_state_goes_to_c_and_back_by_name(tmp_path):
    model = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    dt.save_safetensors(tmp_path / 'model', model.state_dict())
    other = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    other.load_state_dict(dt.utils.load_state(tmp_path / 'model'))
    assert other[0].weight.tolist() == model[0].weight.tolist()
    assert sorted(dt.load_safetensors(tmp_path / 'model')) == sorted(model.state_dict())


def test_nested_states_come_back_from_a_file(tmp_path):
    state = {'a': dt.ones([2]), 'b': [1, 2.5, float('inf'), None, True, 'text',
                          (dt.zeros([]), [])], 3: {'a.b': dt.ones([1])}, 'a.b': {}}
    dt.utils.save_state(state, tmp_path / 'state')
    found = dt.utils.load_state(tmp_path / 'state')
    assert list(found) == ['a', 'b', 3, 'a.b'] and found['b'][:6] == state['b'][:6] and found['b'][6][1] == []
    assert type(found['b'][6]) is tuple and found['b'][6][0].item() == 0 and found[3]['a.b'].tolist() == [1]
    with pytest.raises(TypeError, match='b.0'):
        dt.utils.save_state({'b': [object()]}, tmp_path / 'other')
    assert not (tmp_path / 'other').exists()


@pytest.mark.parametrize('text', ['[', '5', '{"tensor": "none"}',
                         '{"dict": [[1]]}', '{"code": 1}', '[' * 100000, '{"float": 5}'])
def test_a_damaged_structure_is_refused(tmp_path, text):
    dt.save_safetensors(tmp_path / 'x', {'a': dt.ones([1])}, metadata={'devtensor.structure': text})
    with pytest.raises(ValueError):
        dt.utils.load_state(tmp_path / 'x')


@pytest.mark.parametrize('program, steps, half', [('mlp', '4', '2'), ('lenet', '2', '1'), ('gpt', '6', '3')])
def test_examples_continue_bit_for_bit(tmp_path, program, steps, half):
    if program == 'gpt' and not os.path.exists('/usr/share/common-licenses/GPL-3'):
        pytest.skip('there is no text of the GPL')
    path = os.path.join(ROOT, 'examples', 'python', program + '.py')
    whole = run(sys.executable, path, steps).splitlines()
    run(sys.executable, path, half, tmp_path / 'state')
    assert run(sys.executable, path, steps, tmp_path / 'state').splitlines() == whole[int(half):]


def test_a_network_learns_the_digits():
    out = run(sys.executable, os.path.join(ROOT, 'examples', 'python', 'mlp.py'))
    assert float(out.split()[-1]) > 0.85
