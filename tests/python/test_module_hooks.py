# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Hooks of modules in backward, and memory of modules that processes share."""
import gc
import weakref

import pytest

import devtensor as dt
from devtensor import multiprocessing as mp
from devtensor import nn

from peers import check_peer


def test_hooks_in_backward_do_what_pytorchs_do():
    check_peer('peer_hooks.py')


def test_hooks_get_gradients_of_arguments_and_results_and_may_replace_them():
    class Twice(nn.Module):
        def forward(self, x, number):
            return x * 2

    m, x, seen = Twice(), dt.ones([2], requires_grad=True), []

    def hook(module, grad_input, grad_output):
        seen.append((module, [g if g is None else g.tolist() for g in grad_input], [g.tolist() for g in grad_output]))
        return grad_input[0] + 1, None

    m.register_full_backward_hook(hook)
    m.register_full_backward_pre_hook(lambda module, grad_output: (grad_output[0] * 10,))
    m(x, 5).sum().backward()
    assert seen == [(m, [[20, 20], None], [[10, 10]])] and x.grad.tolist() == [21, 21]


def test_a_wrong_number_of_gradients_is_refused():
    m, x = nn.Linear(2, 2), dt.ones([1, 2], requires_grad=True)
    with m.register_full_backward_hook(lambda module, gi, go: (gi[0], gi[0])):
        with pytest.raises(RuntimeError, match='invalid number of grad_input, got 2, but expected 1'):
            m(x).sum().backward()
    with m.register_full_backward_pre_hook(lambda module, go: ()):
        with pytest.raises(RuntimeError, match='invalid number of grad_output, got 0, but expected 1'):
            m(x).sum().backward()
    m(x).sum().backward()


def test_an_argument_and_a_result_may_be_given_twice():
    class Both(nn.Module):
        def forward(self, x, y):
            product = x * y * y
            return product, product

    m, x, seen = Both(), dt.full([2], 3., requires_grad=True), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(([g.tolist() for g in gi],
                                                                      [g.tolist() for g in go])))
    a, b = m(x, x)
    (a + 2 * b).sum().backward()
    assert seen == [([[27, 27], [54, 54]], [[1, 1], [2, 2]])] and x.grad.tolist() == [81, 81]


def test_attention_of_a_tensor_to_itself_may_have_hooks():
    m, x, seen = nn.MultiheadAttention(4, 2), dt.randn(3, 1, 4, requires_grad=True), []
    m.register_full_backward_hook(lambda module, gi, go: seen.append(gi))
    m(x, x, x)[0].sum().backward()
    assert len(seen[0]) == 3 and dt.allclose(seen[0][0] + seen[0][1] + seen[0][2], x.grad)


def test_a_module_with_hooks_is_collected():
    m, x = nn.Linear(2, 2), dt.ones([1, 2], requires_grad=True)
    m.register_full_backward_hook(lambda module, gi, go: None)
    out = m(x)
    found = weakref.ref(m)
    del m, out
    gc.collect()
    assert found() is None


def test_named_tuples_remain_named_tuples():
    class Largest(nn.Module):
        def forward(self, x):
            return x.max(dim=0)

    m, x = Largest(), dt.tensor([[1.0, 5.0], [3.0, 2.0]], requires_grad=True)
    kind = type(m(x))
    m.register_full_backward_hook(lambda module, gi, go: (gi[0] * 2,))
    out = m(x)
    assert type(out) is kind and out.indices.tolist() == [1, 0]
    out.values.sum().backward()
    assert x.grad.tolist() == [[0, 2], [2, 0]]


def _double(module):
    with dt.no_grad():
        module.weight.mul_(2)
        module.running_mean.fill_(7)


@pytest.mark.parametrize('method', ['fork', 'spawn'])
def test_a_shared_module_is_changed_by_another_process(method):
    m = nn.BatchNorm1d(3)
    m(dt.ones([2, 3])).sum().backward()
    weight = m.weight
    assert m.share_memory() is m and m.weight is weight
    assert all(t.is_shared() for t in [*m.parameters(), *m.buffers(), m.weight.grad])
    process = mp.get_context(method).Process(target=_double, args=(m,))
    process.start()
    process.join(60)
    assert process.exitcode == 0
    assert isinstance(m.weight, nn.Parameter) and m.weight.tolist() == [2, 2, 2] and m.running_mean.tolist() == [7, 7,
                                                                                                                 7]


def _describe(queue, m):
    queue.put((type(m.weight).__name__, m.weight.requires_grad, m.cache.persistent, list(m.state_dict())))


def test_parameters_and_buffers_arrive_as_such():
    m = nn.Linear(2, 2, bias=False)
    m.cache = nn.Buffer(dt.ones([2]), persistent=False)
    ctx = mp.get_context('spawn')
    queue = ctx.Queue()
    process = ctx.Process(target=_describe, args=(queue, m))
    process.start()
    assert queue.get(timeout=60) == ('Parameter', True, False, ['weight'])
    process.join(60)
