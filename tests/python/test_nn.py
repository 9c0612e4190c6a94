# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Modules, layers, initial values and functions of devtensor.nn."""
import copy
import math

import pytest

import devtensor as dt
from devtensor import nn

from peers import check_peer


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Sequential(nn.BatchNorm1d(8), nn.Linear(8, 2))
        self.scale = nn.Parameter(dt.ones([2]))
        self.register_buffer('count', dt.zeros([]))
        self.register_buffer('cache', dt.zeros([3]), persistent=False)

    def forward(self, x):
        return self.second(self.first(x)) * self.scale


STATE = ['scale', 'count', 'first.weight', 'first.bias', 'second.0.weight', 'second.0.bias', 'second.0.running_mean',
         'second.0.running_var', 'second.0.num_batches_tracked', 'second.1.weight', 'second.1.bias']


def test_layers_and_functions_equal_pytorchs():
    check_peer('peer_layers.py')


def test_sizes_of_projections_are_checked():
    m = nn.LSTM(3, 4, proj_size=2)
    out, (h, c) = m(dt.ones([5, 2, 3]))
    assert (out.shape, h.shape, c.shape) == ((5, 2, 2), (1, 2, 2), (1, 2, 4))
    for size in -1, 4:
        with pytest.raises(ValueError, match='proj_size'):
            nn.LSTM(3, 4, proj_size=size)
    with pytest.raises(ValueError, match='proj_size is an argument of LSTM'):
        nn.GRU(3, 4, proj_size=2)
    with pytest.raises(RuntimeError, match='initial state'):
        m(dt.ones([5, 2, 3]), (dt.ones([1, 2, 4]), dt.ones([1, 2, 4])))


@pytest.mark.parametrize('make, error, text', [
    (lambda: nn.LSTM(3, 4, proj_size=1.5), TypeError, 'LSTM: proj_size should be of type int, got float'),
    (lambda: nn.LSTM(3, 4, proj_size=True), TypeError, 'LSTM: proj_size should be of type int, got bool'),
    (lambda: nn.LSTM(3, 4, proj_size=None), TypeError, 'proj_size should be of type int, got NoneType'),
    (lambda: nn.LSTM(3, 4, proj_size=2 ** 70), ValueError, 'smaller than hidden_size'),
    (lambda: nn.GRU(3, 'x'), TypeError, 'GRU: hidden_size should be of type int, got str'),
    (lambda: nn.RNN(3.0, 4), TypeError, 'RNN: input_size should be of type int, got float'),
    (lambda: nn.RNN(3, 4, num_layers=1.5), TypeError, 'num_layers should be of type int'),
    (lambda: nn.RNN(-1, 4), ValueError, 'input_size is not negative, got 4, 1 and -1'),
    (lambda: nn.GRU(3, 4, dropout='x'), ValueError, 'dropout should be a number from 0 to 1'),
    (lambda: nn.GRU(3, 4, dropout=float('nan')), ValueError, 'dropout should be a number from 0 to 1'),
    (lambda: nn.LSTMCell(3, 1.5), TypeError, 'LSTMCell: hidden_size should be of type int, got float'),
    (lambda: nn.Linear(1.5, 2), TypeError, r'list of \(int, float\)')])
def test_sizes_of_a_wrong_type_are_refused_with_their_name(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_a_cell_may_have_no_features():
    h, c = nn.LSTMCell(3, 0)(dt.ones(2, 3))
    assert h.shape == c.shape == (2, 0)


# ---- names and lists ----

def test_state_has_the_names_of_parameters_and_persistent_buffers():
    net = Net()
    assert list(net.state_dict()) == STATE
    assert [
    n for n, _ in net.named_parameters()] == [
        n for n in STATE if 'running' not in n and 'num' not in n and n != 'count']
    assert [n for n, _ in net.named_buffers()] == ['count', 'cache'] + \
                                            [n for n in STATE if 'running' in n or 'num' in n]
    assert [n for n, _ in net.named_modules()] == ['', 'first', 'second', 'second.0', 'second.1']
    assert [n for n, _ in net.named_children()] == ['first', 'second']
    assert net.get_parameter('second.1.bias') is net.second[1].bias and net.get_submodule('second.0') is net.second[0]
    assert net.get_buffer('second.0.running_mean') is net.second[0].running_mean
    with pytest.raises(AttributeError):
        net.get_parameter('second.2.bias')


def test_shared_parameters_and_modules_are_listed_once():
    a = nn.Linear(3, 3)
    net = nn.ModuleList([a, a, nn.Linear(3, 3)])
    net[2].weight = a.weight
    assert len(list(net.parameters())) == 3 and len(list(net.modules())) == 3 and len(net.state_dict()) == 6
    assert len(list(net.named_parameters(remove_duplicate=False))) == 6
    b = copy.deepcopy(net)
    assert b[0] is b[1] and b[2].weight is b[0].weight and b[0].weight is not a.weight


def test_assignment_registers_and_replaces():
    net = Net()
    net.scale = nn.Parameter(dt.zeros([2]))
    assert dict(net.named_parameters())['scale'] is net.scale and net.scale.requires_grad
    with pytest.raises(TypeError):
        net.scale = dt.zeros([2])
    with pytest.raises(TypeError):
        net.count = 'text'
    net.count = dt.ones([])
    assert net.get_buffer('count').item() == 1
    net.first = nn.Identity()
    assert 'first.weight' not in net.state_dict()
    del net.scale
    assert not hasattr(net, 'scale') and 'scale' not in net.state_dict()
    net.extra = None
    net.extra = nn.Parameter(dt.ones([1]))
    assert 'extra' in net.state_dict()
    net.plain = nn.Buffer(dt.ones([1]), persistent=False)
    assert 'plain' in dict(net.named_buffers()) and 'plain' not in net.state_dict()


def test_wrong_registrations_are_refused():
    net = nn.Module()
    for bad in '', 'a.b', 5:
        with pytest.raises(KeyError):
            net.register_parameter(bad, None)
    with pytest.raises(TypeError):
        net.register_parameter('w', dt.ones([1]))
    with pytest.raises(TypeError):
        net.register_buffer('b', [1])
    with pytest.raises(KeyError):
        net.register_buffer('forward', dt.ones([1]))

    class Early(nn.Module):
        def __init__(self):
            self.layer = nn.Linear(1, 1)
    with pytest.raises(AttributeError):
        Early()
    with pytest.raises(NotImplementedError):
        nn.Module()(1)


# ---- state ----

def test_a_loaded_state_gives_the_same_results():
    a, b, x = Net().eval(), Net().eval(), dt.rand([5, 4])
    assert b(x).tolist() != a(x).tolist()
    result = b.load_state_dict(a.state_dict())
    assert b(x).tolist() == a(x).tolist() and result.missing_keys == [] and result.unexpected_keys == []


def test_a_wrong_state_changes_nothing():
    net = Net()
    before = net.first.weight.tolist()
    state = {name: dt.ones_like(t) for name, t in net.state_dict().items()}
    for change in ({'first.weight': dt.ones([4, 8])}, {'more': dt.ones([1])}):
        with pytest.raises(RuntimeError, match=next(iter(change))):
            net.load_state_dict({**state, **change})
    with pytest.raises(RuntimeError, match='scale'):
        net.load_state_dict({n: t for n, t in state.items() if n != 'scale'})
    with pytest.raises(TypeError):
        net.load_state_dict([1])
    assert net.first.weight.tolist() == before
    result = net.load_state_dict({'more': 1, 'first.weight': state['first.weight']}, strict=False)
    assert result.unexpected_keys == ['more'] and 'scale' in result.missing_keys
    assert net.first.weight.tolist() == state['first.weight'].tolist()


@pytest.mark.parametrize('value, assign', [
    (dt.eye(2).to_sparse(), False), (dt.quantize_per_tensor(dt.eye(2), 0.5, 0, dt.uint8), False), (dt.eye(3), False),
    (dt.ones(2, 2, dtype=dt.int64), True), (dt.quantize_per_tensor(dt.eye(2), 0.5, 0, dt.uint8), True),
    ([[1, 2], [3, 4]], True)])
def test_a_value_that_does_not_fit_leaves_the_others_as_they_are(value, assign):
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 2))
    before = repr(net.state_dict())
    with pytest.raises(RuntimeError, match="'1.weight' (is|has the)"):
        net.load_state_dict({**{name: dt.zeros_like(t) for name, t in net.state_dict().items()}, '1.weight': value},
                            assign=assign)
    assert repr(net.state_dict()) == before


def test_a_state_of_numpy_arrays_is_loaded():
    numpy = pytest.importorskip('numpy')
    layer = nn.Linear(2, 1)
    layer.load_state_dict({'weight': numpy.array([[1, 2]], 'float32'), 'bias': numpy.array([3], 'float32')})
    assert layer(dt.ones([2])).tolist() == [6]


def test_state_is_on_the_memory_of_the_module_and_assign_takes_tensors_over():
    net = nn.Linear(2, 2)
    net.state_dict()['weight'].zero_()
    assert net.weight.abs().sum().item() == 0 and not net.state_dict()['weight'].requires_grad
    weight = dt.ones([2, 2])
    net.load_state_dict({'weight': weight, 'bias': dt.ones([2])}, assign=True)
    assert net.weight.data_ptr() == weight.data_ptr() and isinstance(net.weight, nn.Parameter)


def test_extra_state_is_saved_and_loaded():
    class Counter(nn.Module):
        n = 0

        def get_extra_state(self):
            return self.n

        def set_extra_state(self, state):
            self.__dict__['n'] = state
    a, b = nn.Sequential(Counter()), nn.Sequential(Counter())
    a[0].n = 7
    b.load_state_dict(a.state_dict())
    assert b[0].n == 7 and list(a.state_dict()) == ['0._extra_state']


# ---- modes and conversions ----

def test_modes_reach_all_modules():
    net = Net()
    assert all(m.training for m in net.modules())
    assert net.eval() is net and not any(m.training for m in net.modules())
    with pytest.raises(ValueError):
        net.train(1)
    net.requires_grad_(False)
    assert not any(p.requires_grad for p in net.parameters())


def test_dropout_and_batch_norm_depend_on_the_mode():
    dropout, x = nn.Dropout(0.5), dt.ones([1000])
    zeros = (dropout(x) == 0).sum().item()
    assert 350 < zeros < 650 and dropout.eval()(x).tolist() == x.tolist()
    norm = nn.BatchNorm1d(2)
    norm(dt.tensor([[1.0, 2.0], [3.0, 6.0]]))
    assert norm.running_mean.tolist() == pytest.approx([0.2, 0.4]) and norm.num_batches_tracked.item() == 1
    norm.eval()(dt.ones([2, 2]))
    assert norm.num_batches_tracked.item() == 1


def test_conversion_keeps_parameters_and_ties():
    net = Net()
    net.tied = net.scale
    before, value = net.scale, net.first.weight.tolist()
    assert net.double() is net and net.scale is before and net.tied is before
    assert net.scale.dtype is dt.float64 and net.scale.requires_grad and net.scale.is_leaf
    assert net.first.weight.tolist() == value and net.second[0].running_mean.dtype is dt.float64
    assert net.second[0].num_batches_tracked.dtype is dt.int64
    assert net(dt.ones([3, 4], dtype=dt.float64)).dtype is dt.float64
    assert net.to(dt.float32).first.bias.dtype is dt.float32 and net.half().scale.dtype is dt.float16
    with pytest.raises(TypeError):
        net.to(dt.int64)


def test_gradients_are_converted_and_removed():
    layer = nn.Linear(2, 2)
    layer.weight.grad = dt.ones([2, 2])
    layer.double()
    assert layer.weight.grad.dtype is dt.float64
    layer.zero_grad(set_to_none=False)
    assert layer.weight.grad.tolist() == [[0, 0], [0, 0]]
    layer.zero_grad()
    assert layer.weight.grad is None


def test_apply_calls_children_first():
    names = []
    Net().apply(lambda m: names.append(type(m).__name__))
    assert names == ['Linear', 'BatchNorm1d', 'Linear', 'Sequential', 'Net']


def test_a_module_can_be_copied_without_sharing_memory():
    net = Net()
    other = copy.deepcopy(net)
    other.first.weight.detach().zero_()
    assert net.first.weight.abs().sum().item() > 0 and list(other.state_dict()) == STATE
    assert other.get_parameter('first.weight') is other.first.weight and other.first.weight.requires_grad


# ---- hooks ----

def test_forward_hooks_see_and_change_arguments_and_results():
    layer, x, seen = nn.Identity(), dt.ones([2]), []
    handles = [layer.register_forward_pre_hook(lambda m, args: (args[0] + 1,)),
               layer.register_forward_hook(lambda m, args, out: seen.append(args[0].tolist())),
               layer.register_forward_hook(lambda m, args, out: out * 10),
               layer.register_forward_hook(lambda m, args, kwargs, out: seen.append(kwargs), with_kwargs=True),
               layer.register_forward_hook(lambda m, args, out: seen.append('first'), prepend=True)]
    assert layer(x).tolist() == [20, 20] and seen == ['first', [2, 2], {}]
    for handle in handles:
        handle.remove()
    assert layer(x) is x and layer.register_forward_hook(print).id != handles[0].id


def test_a_hook_with_always_call_runs_after_an_exception():
    class Failing(nn.Module):
        def forward(self):
            raise ValueError('no')
    module, seen = Failing(), []
    module.register_forward_hook(lambda m, args, out: seen.append(out), always_call=True)
    module.register_forward_hook(lambda m, args, out: seen.append('never'))
    with pytest.raises(ValueError):
        module()
    assert seen == [None]


# ---- containers ----

def test_lists_of_modules_behave_as_lists():
    layers = nn.ModuleList([nn.Linear(1, 1), nn.ReLU()])
    layers.append(nn.Tanh()).extend([nn.Sigmoid()])
    layers.insert(1, nn.Identity())
    assert [type(m).__name__ for m in layers] == ['Linear', 'Identity', 'ReLU', 'Tanh', 'Sigmoid'] and len(layers) == 5
    assert isinstance(layers[-1], nn.Sigmoid) and len(layers[1:3]) == 2 and isinstance(layers.pop(1), nn.Identity)
    layers[0] = nn.ReLU()
    del layers[-1]
    assert [n for n, _ in layers.named_children()] == ['0', '1', '2']
    for bad in 3, -4:
        with pytest.raises(IndexError):
            layers[bad]
    net = nn.Sequential({'a': nn.Linear(1, 2), 'b': nn.ReLU()})
    assert list(net.state_dict()) == ['a.weight', 'a.bias'] and len(net[:1]) == 1


def test_dicts_of_modules_and_parameters_behave_as_dicts():
    modules = nn.ModuleDict({'a': nn.Linear(1, 1), 'b': nn.ReLU()})
    modules['c'] = nn.Tanh()
    assert list(modules) == ['a', 'b', 'c'] and 'a' in modules and list(modules.state_dict()) == ['a.weight', 'a.bias']
    assert isinstance(modules.pop('b'), nn.ReLU) and len(modules) == 2
    with pytest.raises(KeyError):
        modules['b']
    parameters = nn.ParameterDict({'w': dt.ones([2])})
    parameters['v'] = nn.Parameter(dt.ones([1]))
    assert sorted(parameters.state_dict()) == ['v', 'w'] and parameters['w'].requires_grad
    both = nn.ParameterList([dt.ones([1]), nn.Parameter(dt.ones([2]))])
    both[0] = dt.zeros([1])
    assert list(both.state_dict()) == ['0', '1'] and both[0].item() == 0 and len(both) == 2


def test_repr_shows_the_tree():
    assert repr(nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.ReLU()))) == (
        'Sequential(\n  (0): Linear(in_features=2, out_features=3, bias=True)\n'
        '  (1): Sequential(\n    (0): ReLU()\n  )\n)')
    assert repr(nn.Conv2d(1, 2, 3, padding=1)) == 'Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1), padding=(1, 1))'


# ---- parameters and initial values ----

def test_a_parameter_is_a_leaf_on_the_given_memory():
    data = dt.ones([2])
    p = nn.Parameter(data)
    assert p.requires_grad and p.is_leaf and p.data_ptr() == data.data_ptr() and isinstance(p, dt.Tensor)
    assert not nn.Parameter(data, requires_grad=False).requires_grad and nn.Parameter((p * 2)).is_leaf
    assert type(p + 1) is dt.Tensor and repr(p).startswith('Parameter containing')
    assert copy.deepcopy(p).data_ptr() != p.data_ptr() and isinstance(copy.deepcopy(p), nn.Parameter)


def spread(t):
    return t.std().item()


def test_initial_values_have_the_documented_spread():
    dt.manual_seed(1)
    w = dt.empty([400, 100])
    assert spread(nn.init.xavier_uniform_(w)) == pytest.approx(math.sqrt(2 / 500), rel=0.05)
    assert spread(nn.init.xavier_normal_(w, 2)) == pytest.approx(2 * math.sqrt(2 / 500), rel=0.05)
    assert spread(nn.init.kaiming_uniform_(w, nonlinearity='relu')) == pytest.approx(math.sqrt(2 / 100), rel=0.05)
    assert spread(nn.init.kaiming_normal_(w, mode='fan_out')) == pytest.approx(math.sqrt(2 / 400), rel=0.05)
    assert spread(
    nn.init.normal_(
        w,
        3,
        0.5)) == pytest.approx(
            0.5,
            rel=0.05) and w.mean().item() == pytest.approx(
                3,
                 rel=0.05)
    assert nn.init.trunc_normal_(w, std=2).abs().max().item() <= 2
    q = nn.init.orthogonal_(dt.empty([5, 12], dtype=dt.float64), 2)
    assert ((q @ q.mT) - 4 * dt.eye(5)).abs().max().item() < 1e-12
    assert nn.init.eye_(dt.empty([2, 3])).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert (nn.init.sparse_(dt.empty([10, 3]), 0.3) == 0).sum().item() == 9
    conv, x = nn.Conv1d(2, 2, 3, padding=1, bias=False), dt.rand([1, 2, 5])
    nn.init.dirac_(conv.weight)
    assert conv(x).tolist() == x.tolist() and conv.weight.requires_grad
    layer = nn.Linear(100, 50)
    assert layer.weight.abs().max().item() <= 0.1 and layer.bias.abs().max().item() <= 0.1
    assert spread(layer.weight) == pytest.approx(0.1 / math.sqrt(3), rel=0.05)


def test_initial_values_repeat_with_a_seed_and_refuse_nonsense():
    dt.manual_seed(3)
    a = nn.LSTM(3, 4).weight_hh_l0.tolist()
    dt.manual_seed(3)
    assert nn.LSTM(3, 4).weight_hh_l0.tolist() == a
    for call in (lambda: nn.init.xavier_uniform_(dt.ones([3])), lambda: nn.init.eye_(dt.ones([3])),
                 lambda: nn.init.kaiming_normal_(dt.ones([3, 3]), mode='x'), lambda: nn.init.calculate_gain('x')):
        with pytest.raises(ValueError):
            call()


def test_random_state_repeats_numbers():
    dt.manual_seed(5)
    assert dt.initial_seed() == 5
    state = dt.get_rng_state()
    a = dt.rand([3]).tolist()
    dt.set_rng_state(state)
    assert dt.rand([3]).tolist() == a and dt.seed() == dt.initial_seed()


# ---- errors ----

@pytest.mark.parametrize('call', [
    lambda: nn.Linear(
    2, 2)(
        dt.ones(
            [3])), lambda: nn.Conv2d(
                3, 4, 3, groups=2), lambda: nn.Conv2d(
                    1, 1, 3, padding='other'),
    lambda: nn.Conv2d(1, 1, 3, stride=2, padding='same'), lambda: nn.BatchNorm2d(3)(dt.ones([2, 3])),
    lambda: nn.BatchNorm1d(3)(dt.ones([1, 3])), lambda: nn.Dropout(2), lambda: nn.MultiheadAttention(5, 2),
    lambda: nn.Embedding(
    3, 2, padding_idx=3), lambda: nn.CrossEntropyLoss(
        reduction='some'), lambda: nn.GroupNorm(
            2, 3),
    lambda: nn.functional.mse_loss(dt.ones([1]), dt.ones([1]), reduction=None), lambda: nn.functional.glu(dt.ones([3])),
    lambda: nn.functional.interpolate(
        dt.ones([1, 1, 2])), lambda: nn.functional.pixel_shuffle(dt.ones([1, 3, 2, 2]), 2),
    lambda: nn.RNN(1, 1, nonlinearity='sin'), lambda: nn.functional.embedding_bag(dt.tensor([0]), dt.ones([1, 1])),
])
def test_wrong_arguments_are_value_errors(call):
    with pytest.raises(ValueError):
        call()


def test_more_wrong_arguments():
    with pytest.raises(RuntimeError):
        nn.LSTM(3, 4)(dt.ones([5, 2, 4]))
    with pytest.raises(RuntimeError):
        nn.LSTM(3, 4)(dt.ones([5, 2, 3]), (dt.ones([1, 2, 3]), dt.ones([1, 2, 4])))
    for call in (lambda: nn.ReLU(True, False), lambda: nn.ReLU(place=1),
                 lambda: nn.Threshold(1), lambda: nn.MSELoss()(dt.ones([1]))):
        with pytest.raises(TypeError):
            call()


# ---- sequences, gradients, vectors ----

def test_packed_sequences_equal_single_ones():
    dt.manual_seed(2)
    lstm = nn.LSTM(3, 4, bidirectional=True).double()
    sequences = [dt.rand([n, 3], dtype=dt.float64) for n in (2, 5, 3)]
    packed = nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False)
    out, lengths = nn.utils.rnn.pad_packed_sequence(lstm(packed)[0])
    assert lengths.tolist() == [2, 5, 3]
    for i, sequence in enumerate(sequences):
        alone = lstm(sequence)[0]
        assert (out[:len(sequence), i] - alone).abs().max().item() < 1e-14
        assert out[len(sequence):, i].abs().sum().item() == 0


def test_gradients_are_clipped_by_norm_and_value():
    p, q = nn.Parameter(dt.zeros([2])), nn.Parameter(dt.zeros([1]))
    p.grad, q.grad, none = dt.tensor([3.0, 0.0]), dt.tensor([4.0]), nn.Parameter(dt.zeros([1]))
    assert nn.utils.clip_grad_norm_([p, q, none, p], 1.0).item() == 5
    assert p.grad.tolist() == pytest.approx([0.6, 0], rel=1e-5) and q.grad.item() == pytest.approx(0.8, rel=1e-5)
    nn.utils.clip_grad_value_(q, 0.5)
    assert q.grad.item() == 0.5
    q.grad = dt.tensor([float('inf')])
    with pytest.raises(RuntimeError):
        nn.utils.clip_grad_norm_([p, q], 1.0, error_if_nonfinite=True)
    assert q.grad.item() == float('inf')


def test_parameters_go_to_a_vector_and_back():
    net = Net()
    vector = nn.utils.parameters_to_vector(net.parameters())
    nn.utils.vector_to_parameters(vector * 0 + 2, net.parameters())
    assert net.first.weight.tolist() == [[2] * 4] * 8 and net.first.weight.is_leaf
    with pytest.raises(ValueError):
        nn.utils.vector_to_parameters(dt.ones([3]), net.parameters())


def test_the_special_namespaces_have_the_operators():
    a = dt.tensor([[2.0, 0.0], [0.0, 4.0]])
    assert dt.linalg.inv(a).tolist() == [[0.5, 0], [0, 0.25]] and dt.linalg.det(a).item() == 8
    assert dt.fft.ifft(dt.fft.fft(a)).real.tolist() == a.tolist()
    assert dt.special.expit(dt.zeros([1])).item() == 0.5
