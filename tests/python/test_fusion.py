# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A Linear and the activation after it are one operator, unless a hook or a subclass stands between."""
import pytest

import devtensor as dt
from devtensor import nn
from devtensor.nn import containers, transformer
from devtensor.nn import functional as F


@pytest.fixture
def fused(monkeypatch):
    """The names of the activations that were computed with a Linear."""
    names = []

    def linear_then(linear, input, name):
        names.append(name)
        return dt._C.linear_activation(input, linear.weight, linear.bias, activation=name)

    for module in containers, transformer:
        monkeypatch.setattr(module, 'linear_then', linear_then)
    return names


def one_by_one(modules, x):
    for m in modules:
        x = m(x)
    return x


@pytest.mark.parametrize('dtype', [dt.float32, dt.bfloat16, dt.float64])
def test_sequential_has_the_results_of_its_modules(fused, dtype):
    net = nn.Sequential(nn.Linear(30, 70), nn.ReLU(), nn.Linear(70, 40), nn.GELU(), nn.Linear(40, 40),
                        nn.GELU(approximate='tanh'), nn.Linear(40, 20, bias=False), nn.SiLU(), nn.Linear(20, 9),
                        nn.Linear(9, 5), nn.Tanh(), nn.Linear(5, 5)).to(dtype)
    for shape in [30], [7, 30], [2, 3, 30], [0, 30]:
        x = dt.randn(shape).to(dtype)
        del fused[:]
        with dt.no_grad():
            assert dt.equal(net(x), one_by_one(net, x))
        assert fused == ['relu', 'gelu', 'gelu_tanh', 'silu']


def test_gradients_are_those_of_the_modules(fused):
    net, x = nn.Sequential(nn.Linear(6, 9), nn.GELU(), nn.Linear(9, 4), nn.ReLU()), dt.randn([5, 6])
    results = []
    for call in net, lambda x: one_by_one(net, x):
        net.zero_grad()
        call(x).sum().backward()
        results.append([p.grad.clone() for p in net.parameters()])
    assert fused == ['gelu', 'relu']
    assert all(dt.equal(a, b) for a, b in zip(*results))


@pytest.mark.parametrize('at', [0, 1])
def test_hooks_see_the_value_between(fused, at):
    net, seen = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), []
    handle = net[at].register_forward_hook(lambda module, args, result: seen.append(result))
    x = dt.randn([2, 3])
    net(x)
    assert len(seen) == 1 and not fused
    handle.remove()
    net[at].register_forward_pre_hook(lambda module, args: seen.append(args))
    net(x)
    assert len(seen) == 2 and not fused


def test_subclasses_and_replaced_forwards_are_called(fused):
    class Mine(nn.Linear):
        def forward(self, input):
            return super().forward(input) + 1

    class Twice(nn.ReLU):
        def forward(self, input):
            return super().forward(input) * 2

    plain, x = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), dt.randn([2, 3])
    plain[0].forward = lambda input: input
    for net in nn.Sequential(Mine(3, 4), nn.ReLU()), nn.Sequential(nn.Linear(3, 4), Twice()), plain:
        assert dt.equal(net(x), one_by_one(net, x))
    assert not fused


@pytest.mark.parametrize('activation, name', [(F.relu, 'relu'), ('gelu', 'gelu'), (nn.SiLU(), 'silu'), (F.mish, None)])
def test_layers_of_transformers_call_it(fused, activation, name):
    layer = nn.TransformerEncoderLayer(8, 2, 16, activation=activation).eval()
    x = dt.randn([5, 3, 8])
    with dt.no_grad():
        got = layer(x)
        assert fused == [name] * (name is not None)
        layer.linear1.register_forward_hook(lambda module, args, result: None)
        assert dt.equal(layer(x), got)
    assert fused == [name] * (name is not None)


@pytest.mark.parametrize('kind, name', [(nn.Linear, 'forward'), (nn.ReLU, 'forward'), (nn.Module, '__call__')])
def test_replaced_methods_of_classes_are_called(fused, monkeypatch, kind, name):
    net, method, seen = nn.Sequential(nn.Linear(3, 4), nn.ReLU()), getattr(kind, name), []

    def replacement(self, *args):
        seen.append(type(self))
        return method(self, *args)

    monkeypatch.setattr(kind, name, replacement)
    net(dt.randn([2, 3]))
    assert not fused
    assert seen == ([nn.Sequential, nn.Linear, nn.ReLU] if kind is nn.Module else [kind])
