# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Optimizers, schedules, averages, mixed precision."""
import math
import sys
import threading
import time

import pytest

import devtensor as dt
from devtensor import amp, nn
from devtensor.optim import SGD, Adagrad, Adam, AdamW, RMSprop, lr_scheduler, swa_utils

from peers import check_peer

ALL = [SGD, Adam, AdamW, Adagrad, RMSprop]


def parameter(*values):
    return nn.Parameter(dt.tensor(values, dtype=dt.float64))


def with_grad(value, grad):
    p = parameter(value)
    p.grad = dt.tensor([grad], dtype=dt.float64)
    return p


def test_steps_and_rates_equal_pytorchs():
    check_peer('peer_optim.py')


# ---- steps ----

def test_a_step_of_each_method_has_the_documented_size():
    g, p0 = 0.5, 2.0
    expected = {SGD: p0 - 0.1 * g, Adam: p0 - 0.1 * g / (g + 1e-8), AdamW: p0 * (1 - 0.1 * 0.01) - 0.1 * g / (g + 1e-8),
                Adagrad: p0 - 0.1 * g / (g + 1e-10), RMSprop: p0 - 0.1 * g / (math.sqrt(0.01 * g * g) + 1e-8)}
    for method in ALL:
        p = with_grad(p0, g)
        method([p], lr=0.1).step()
        assert p.item() == pytest.approx(expected[method], rel=1e-12), method.__name__


def test_options_are_those_of_the_group():
    p, q, r = with_grad(1, 1), with_grad(1, 1), with_grad(1, 1)
    o = SGD([{'params': [p]}, {'params': q, 'lr': 0.5}], lr=0.1)
    o.add_param_group({'params': [r], 'maximize': True})
    o.step()
    assert [p.item(), q.item(), r.item()] == [0.9, 0.5, 1.1]


@pytest.mark.parametrize('change', [('lr', 0.5, 0.5), ('lr', 0, 1.0), ('weight_decay',
                         1, 0.8), ('maximize', True, 1.1), ('lr', dt.tensor(0.5), 0.5)])
def test_a_change_of_param_groups_takes_effect(change):
    key, value, result = change
    p = with_grad(1, 1)
    o = SGD([p], lr=0.1)
    o.param_groups[0][key] = value
    o.step()
    assert p.item() == pytest.approx(result)
    before = p.item()
    o.param_groups[0]['lr'] = 0.0
    o.step()
    assert p.item() == before


def test_parameters_without_a_gradient_are_left_alone():
    p, q = with_grad(1, 1), parameter(1)
    o = Adam([p, q])
    o.step()
    assert q.item() == 1 and len(o.state) == 1 and list(o.state) == [p] and o.state[q] == {}
    o.zero_grad()
    assert p.grad is None
    p.grad = dt.ones([1], dtype=dt.float64)
    o.zero_grad(set_to_none=False)
    assert p.grad.item() == 0


def test_a_closure_computes_the_loss_with_gradients():
    p = parameter(3)
    o = SGD([p], lr=0.1)

    def closure():
        o.zero_grad()
        loss = (p * p).sum()
        loss.backward()
        return loss
    with dt.no_grad():
        assert o.step(closure).item() == 9
    assert p.item() == pytest.approx(2.4)


def test_hooks_run_around_a_step():
    p, seen = with_grad(1, 1), []
    o = SGD([p], lr=0.1)
    before = o.register_step_pre_hook(lambda o, args, kwargs: seen.append(p.item()))
    o.register_step_post_hook(lambda o, args, kwargs: seen.append(p.item()))
    o.step()
    before.remove()
    o.step()
    assert seen == [1, 0.9, pytest.approx(0.8)]


def test_wrong_arguments_are_refused():
    p = parameter(1)
    for call in (lambda: SGD([]), lambda: SGD([p], lr=-1), lambda: Adam([p], betas=(1, 0.9)),
                 lambda: Adam([p], betas=(0.9,)),
                 lambda: SGD([p], nesterov=True), lambda: SGD([p, p]), lambda: SGD(
                     [p * 2]), lambda: SGD([dt.ones([1], dtype=dt.int64)]),
                 lambda: SGD([p], lr=float('nan'))):
        with pytest.raises(ValueError):
            call()
    for call in (lambda: SGD(p), lambda: SGD([1]), lambda: SGD([p], lr='x'), lambda: SGD([{'params': {p}}])):
        with pytest.raises(TypeError):
            call()
    with pytest.raises(NotImplementedError):
        Adam([p], differentiable=True)
    o = SGD([p], lr=0.1)
    o.param_groups[0]['lr'] = -1
    with pytest.raises(ValueError):
        o.step()
    o.param_groups[0]['lr'] = 1
    o.param_groups.append(o.param_groups[0])
    with pytest.raises(ValueError):
        o.step()


def test_a_step_that_begins_while_options_are_read_is_noticed():
    class Flag:
        """False, and another thread is in a step when it is read."""
        thread = None

        def __bool__(self):
            if Flag.thread is None:
                Flag.thread = threading.Thread(target=o._c.step, args=([{**o.param_groups[0], 'maximize': False}],))
                Flag.thread.start()
                while Flag.thread.is_alive():
                    try:
                        o._c.lr()
                    except RuntimeError:
                        break
                    time.sleep(0)
            return False

    p = nn.Parameter(dt.zeros(1 << 22))
    p.grad = dt.ones_like(p)
    o = Adam([p], lr=0.1)
    o.param_groups[0]['maximize'] = Flag()
    # The other thread may be at the end of its step already.
    for _ in range(50):
        Flag.thread = None
        try:
            o.step()
        except RuntimeError as e:
            assert 'another thread' in str(e)
            break
        finally:
            Flag.thread.join()
    else:
        pytest.fail('no step was noticed')


def test_a_converted_module_is_not_stepped_in_its_old_memory():
    layer = nn.Linear(2, 2)
    o = SGD(layer.parameters(), lr=0.1)
    layer.double()
    with pytest.raises(RuntimeError, match='memory'):
        o.step()


# ---- state ----

@pytest.mark.parametrize('method', ALL)
def test_a_loaded_state_continues_bit_for_bit(method):
    options = {
    SGD: {
        'momentum': 0.9}, Adam: {
            'amsgrad': True}, RMSprop: {
                'momentum': 0.5, 'centered': True}}.get(
                    method, {})

    def steps(o, p, numbers):
        for n in numbers:
            p.grad = dt.tensor([math.sin(n), 1.0])
            o.step()
    p, q = nn.Parameter(dt.ones([2])), nn.Parameter(dt.ones([2]))
    a, b = method([p], lr=0.1, **options), method([q], lr=0.7, **options)
    steps(a, p, range(3))
    b.load_state_dict(a.state_dict())
    q.detach().copy_(p)
    steps(a, p, range(3, 6))
    steps(b, q, range(3, 6))
    assert p.tolist() == q.tolist() and b.param_groups[0]['lr'] == 0.1


def test_state_has_the_form_of_pytorchs():
    p = with_grad(1, 1)
    o = AdamW([p], lr=0.1)
    o.step()
    state = o.state_dict()
    assert sorted(state['state'][0]) == ['exp_avg', 'exp_avg_sq', 'step'] and state['state'][0]['step'].item() == 1
    assert state['param_groups'][0]['params'] == [0] and state['param_groups'][0]['lr'] == 0.1
    assert o.state[p]['exp_avg'].tolist() == pytest.approx([0.1])


def test_a_wrong_state_changes_nothing():
    p = nn.Parameter(dt.ones([2]))
    p.grad = dt.ones([2])
    o = Adam([p], lr=0.1)
    o.step()
    state = o.state_dict()
    bad = {'state': {0: {**state['state'][0],
        'exp_avg': dt.ones([3])}}, 'param_groups': [{**state['param_groups'][0], 'lr': 9}]}
    with pytest.raises(ValueError):
        o.load_state_dict(bad)
    with pytest.raises(ValueError):
        o.load_state_dict({'state': {}, 'param_groups': []})
    assert o.param_groups[0]['lr'] == 0.1 and o.state[p]['exp_avg'].tolist() == pytest.approx([0.1, 0.1])
    before = p.tolist()
    o.step()
    assert before[0] - p.tolist()[0] == pytest.approx(0.1, rel=1e-4)


@pytest.mark.parametrize('change', [
    lambda s: None, lambda s: [], lambda s: {'state': s['state']}, lambda s: {'param_groups': s['param_groups']},
    lambda s: {**s, 'param_groups': None}, lambda s: {**s, 'param_groups': [1]},
    lambda s: {**s, 'param_groups': [{'lr': 1}]}, lambda s: {**s, 'param_groups': [{'params': 5}]},
    lambda s: {**s, 'param_groups': [{'params': [1]}]}, lambda s: {**s, 'state': None},
    lambda s: {**s, 'state': {'0': s['state'][0]}}, lambda s: {**s, 'state': {0: None}},
    lambda s: {**s, 'state': {0: dt.ones(2)}}, lambda s: {**s, 'state': {0: {**s['state'][0], 'exp_avg': 'text'}}},
    lambda s: {**s, 'state': {0: {'step': 1}}}])
def test_a_state_of_another_form_is_refused(change):
    p = with_grad(1, 1)
    o = Adam([p], lr=0.1)
    o.step()
    state, before = o.state_dict(), repr(o.state_dict())
    with pytest.raises((TypeError, ValueError)):
        o.load_state_dict(change(state))
    assert repr(o.state_dict()) == before


def test_groups_that_cannot_be_restored_are_refused_before_a_load():
    p = with_grad(1, 1)
    o = SGD([p], lr=0.1, momentum=0.5)
    o.step()
    state = o.state_dict()
    o.param_groups[0]['lr'] = 'x'
    with pytest.raises(TypeError):
        o.load_state_dict({**state, 'param_groups': [{'params': [0], 'lr': 1}]})
    assert o.param_groups[0]['momentum'] == 0.5 and o.state[p]['momentum_buffer'].tolist() == [1]


@pytest.mark.parametrize('make, states', [
    (lambda: swa_utils.EMA([dt.nn.Parameter(dt.ones(2)), dt.nn.Parameter(dt.ones(3))]),
     [{}, None, {'averages': [dt.zeros(2)]}, {'averages': [dt.zeros(2), dt.zeros(1)]}, {'averages': 'ab'},
      {'averages': [dt.zeros(2), dt.eye(3).to_sparse()]}]),
    (amp.GradScaler, [5, {'scale': 1}, {**amp.GradScaler().state_dict(), 'growth_factor': 0},
                      {**amp.GradScaler().state_dict(), 'scale': float('nan')},
                      {**amp.GradScaler().state_dict(), 'growth_interval': 1.5}]),
    (lambda: lr_scheduler.SequentialLR(o := SGD([parameter(1)]), [lr_scheduler.ConstantLR(o)] * 2, [2]),
     [{}, None, {'last_epoch': 1, 'milestones': [1], 'schedulers': []},
      {'last_epoch': 1, 'milestones': [], 'schedulers': [{}, {}]},
      {'last_epoch': 1, 'milestones': [1], 'schedulers': [{}, 1]}]),
    (lambda: lr_scheduler.StepLR(SGD([parameter(1)]), 1), [None, 5, [('gamma', 1)]])],
    ids=['averages', 'scaler', 'sequence', 'schedule'])
def test_other_states_of_a_wrong_form_change_nothing(make, states):
    o = make()
    before = repr(o.state_dict())
    for state in states:
        with pytest.raises((TypeError, ValueError)):
            o.load_state_dict(state)
        assert repr(o.state_dict()) == before


def test_a_failed_load_keeps_state_that_its_options_have_not():
    p = with_grad(1, 1)
    o = SGD([p], lr=0.1, momentum=0.9)
    o.step()
    with pytest.raises(ValueError):
        o.load_state_dict({'state': {0: {'momentum_buffer': dt.ones([7])}}, 'param_groups': [
                          {'lr': 1, 'momentum': 0, 'params': [0]}]})
    assert o.state[p]['momentum_buffer'].tolist() == [1]


def test_optimizers_leak_nothing():
    p = with_grad(1, 1)
    group, before = {'params': [p]}, sys.getrefcount(p)
    for _ in range(200):
        o = Adam([group], lr=0.1)
        o.step()
        o.state_dict()
        o.load_state_dict(o.state_dict())
        with pytest.raises(TypeError):
            o.param_groups[0]['lr'] = 'x'
            o.step()
        del o
    assert sys.getrefcount(p) == before


# ---- schedules ----

def rates(make, n, lr=0.1, optimizer=SGD, **options):
    o = optimizer([parameter(1)], lr=lr, **options)
    s, found = make(o), []
    for _ in range(n):
        found.append(o.param_groups[0]['lr'])
        s.step()
    return found


def test_schedules_have_the_documented_rates():
    assert rates(lambda o: lr_scheduler.StepLR(o, 2, 0.5), 5) == pytest.approx([0.1, 0.1, 0.05, 0.05, 0.025])
    assert rates(lambda o: lr_scheduler.MultiStepLR(o, [3, 1], 0.1), 4) == pytest.approx([0.1, 0.01, 0.01, 0.001])
    assert rates(lambda o: lr_scheduler.ExponentialLR(o, 0.5), 3) == pytest.approx([0.1, 0.05, 0.025])
    assert rates(lambda o: lr_scheduler.LinearLR(o, 0.5, 1, 2), 4) == pytest.approx([0.05, 0.075, 0.1, 0.1])
    assert rates(lambda o: lr_scheduler.ConstantLR(o, 0.5, 2), 3) == pytest.approx([0.05, 0.05, 0.1])
    assert rates(lambda o: lr_scheduler.PolynomialLR(o, 2), 3) == pytest.approx([0.1, 0.05, 0])
    assert rates(lambda o: lr_scheduler.CosineAnnealingLR(o, 2, 0.02), 3) == pytest.approx([0.1, 0.06, 0.02])
    assert rates(lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 1, 2), 4) == pytest.approx([0.1, 0.1, 0.05, 0.1])
    assert rates(lambda o: lr_scheduler.LambdaLR(o, lambda n: n + 1), 3) == pytest.approx([0.1, 0.2, 0.3])
    assert rates(lambda o: lr_scheduler.MultiplicativeLR(o, lambda n: 0.5), 3) == pytest.approx([0.1, 0.05, 0.025])
    both = rates(lambda o: lr_scheduler.SequentialLR(
        o, [lr_scheduler.ConstantLR(o, 0.1, 20), lr_scheduler.ExponentialLR(o, 0.5)], [2]), 5)
    assert both == pytest.approx([0.01, 0.01, 0.1, 0.05, 0.025])


def test_one_cycle_moves_rate_and_momentum():
    o = Adam([parameter(1)])
    s = lr_scheduler.OneCycleLR(o, 0.1, total_steps=10)
    first = (o.param_groups[0]['lr'], o.param_groups[0]['betas'][0])
    found = []
    for _ in range(9):
        s.step()
        found.append((o.param_groups[0]['lr'], o.param_groups[0]['betas'][0]))
    assert first == pytest.approx((0.004, 0.95)) and max(
        found)[0] == pytest.approx(0.1) and max(found)[1] == pytest.approx(0.85)
    assert found[-1] == pytest.approx((0.004 / 1e4, 0.95))
    s.step()
    assert (o.param_groups[0]['lr'], o.param_groups[0]['betas'][0]) == found[-1]
    with pytest.raises(ValueError):
        s.step()


def test_plateau_lowers_the_rate_without_improvement():
    o = SGD([{'params': [parameter(1)]}, {'params': [parameter(1)], 'lr': 0.02}], lr=0.1)
    s = lr_scheduler.ReduceLROnPlateau(o, patience=1, factor=0.1, min_lr=[0, 0.015])
    for measure in (1, 2, 2, 2, 2):
        s.step(measure)
    assert [g['lr'] for g in o.param_groups] == pytest.approx([0.001, 0.015])
    small = SGD([parameter(1)], lr=0.1)
    unchanged = lr_scheduler.ReduceLROnPlateau(small, patience=0, eps=0.2)
    for _ in range(3):
        unchanged.step(1)
    assert small.param_groups[0]['lr'] == 0.1
    other = lr_scheduler.ReduceLROnPlateau(o, mode='max')
    other.load_state_dict(s.state_dict())
    assert other.best == 1 and other.mode == 'min'


def test_a_loaded_schedule_continues():
    a, b = SGD([parameter(1)], lr=0.1), SGD([parameter(1)], lr=0.1)
    s = lr_scheduler.StepLR(a, 2)
    for _ in range(3):
        s.step()
    t = lr_scheduler.StepLR(b, 5)
    t.load_state_dict(s.state_dict())
    s.step()
    t.step()
    assert a.param_groups[0]['lr'] == b.param_groups[0]['lr'] == pytest.approx(0.001)
    c = SGD([{'params': [parameter(1)], 'initial_lr': 0.1}], lr=0.1)
    lr_scheduler.StepLR(c, 2, last_epoch=3)
    assert c.param_groups[0]['lr'] == pytest.approx(0.001)
    with pytest.raises(KeyError):
        lr_scheduler.StepLR(SGD([parameter(1)]), 2, last_epoch=3)


def test_wrong_schedules_are_refused():
    o = SGD([parameter(1)], lr=0.1)
    for call in (lambda: lr_scheduler.OneCycleLR(o, 0.1), lambda: lr_scheduler.LambdaLR(o, [abs, abs]),
                 lambda: lr_scheduler.StepLR(o, 0),
                 lambda: lr_scheduler.SequentialLR(o, [], []), lambda: lr_scheduler.LinearLR(o, 0),
                 lambda: lr_scheduler.ReduceLROnPlateau(o, 'best'),
                 lambda: lr_scheduler.OneCycleLR(Adagrad([parameter(1)]), 0.1, 5)):
        with pytest.raises(ValueError):
            call()
    with pytest.raises(TypeError):
        lr_scheduler.StepLR(5, 1)


# ---- averages ----

def test_exponential_averages_follow_and_swap():
    p = parameter(0)
    ema = swa_utils.EMA([p], 0.75)
    p.detach().fill_(4)
    ema.update()
    assert ema.averages()[0].tolist() == [1] and p.item() == 4
    with ema:
        assert p.item() == 1
        with pytest.raises(RuntimeError):
            ema.update()
    assert p.item() == 4
    other = swa_utils.EMA([parameter(0)], 0.75)
    other.load_state_dict(ema.state_dict())
    assert other.averages()[0].item() == 1
    with pytest.raises(ValueError):
        swa_utils.EMA([p], 1)


def test_averaged_models_are_means_or_moving_averages():
    model = nn.Linear(1, 1, bias=False)
    mean, moving = swa_utils.AveragedModel(model), swa_utils.AveragedModel(
        model, multi_avg_fn=swa_utils.get_ema_multi_avg_fn(0.75))
    for value in (1, 2, 6):
        nn.init.constant_(model.weight, value)
        mean.update_parameters(model)
        moving.update_parameters(model)
    assert mean(dt.ones([1])).item() == pytest.approx(
        3) and moving.module.weight.item() == pytest.approx(1.25 * 0.75 + 1.5)
    assert mean.n_averaged.item() == 3 and 'n_averaged' in mean.state_dict() and model.weight.item() == 6


def test_statistics_of_batch_norm_are_computed_again():
    model = nn.Sequential(nn.BatchNorm1d(1))
    swa_utils.update_bn([dt.tensor([[0.0], [2.0]]), dt.tensor([[4.0], [6.0]])], model)
    assert model[0].running_mean.item() == pytest.approx(3) and model[0].momentum == 0.1


# ---- mixed precision ----

def test_autocast_lowers_products_and_nests():
    a = dt.ones([2, 2])
    with dt.autocast('cpu', dtype=dt.bfloat16):
        assert (a @ a).dtype is dt.bfloat16 and dt.amp.is_autocast_enabled()
        with dt.autocast(enabled=False):
            assert (a @ a).dtype is dt.float32
        assert nn.functional.mse_loss(a @ a, a).dtype is dt.float32

        @dt.autocast(dtype=dt.float16)
        def product():
            return a @ a
        assert product().dtype is dt.float16
    assert (a @ a).dtype is dt.float32 and not dt.amp.is_autocast_enabled()
    with pytest.raises(ValueError):
        dt.autocast(dtype=dt.float64)
    with pytest.raises(ZeroDivisionError):
        with dt.autocast():
            1 / 0
    assert (a @ a).dtype is dt.float32


def test_gradients_of_autocast_have_the_dtype_of_the_parameter():
    layer = nn.Linear(4, 4)
    with dt.autocast():
        loss = nn.functional.mse_loss(layer(dt.ones([2, 4])), dt.zeros([2, 4]))
    loss.backward()
    assert layer.weight.grad.dtype is dt.float32 and loss.dtype is dt.float32


def test_a_scaler_leaves_infinite_steps_out():
    p = nn.Parameter(dt.ones([1]))
    o, scaler = SGD([p], lr=0.5), dt.amp.GradScaler(init_scale=8, growth_interval=1)
    scaler.scale((p * 2).sum()).backward()
    assert p.grad.item() == 16
    scaler.unscale_(o)
    assert p.grad.item() == 2
    scaler.step(o)
    scaler.update()
    assert p.item() == 0 and scaler.get_scale() == 16
    p.grad = dt.tensor([float('inf')])
    scaler.step(o)
    scaler.update()
    assert p.item() == 0 and scaler.get_scale() == 8
    o.param_groups[0]['lr'] = 1.0
    p.grad = dt.tensor([8.0])
    scaler.step(o)
    assert p.item() == -1
    other = dt.amp.GradScaler()
    scaler.update()
    other.load_state_dict(scaler.state_dict())
    assert other.get_scale() == scaler.get_scale() == 16
    off = dt.amp.GradScaler(enabled=False)
    assert off.scale(p) is p and off.get_scale() == 1 and off.state_dict() == {}
    with pytest.raises(ValueError):
        dt.amp.GradScaler(init_scale=0)
    with pytest.raises(OSError):
        scaler.unscale_(o)
        scaler.unscale_(o)
