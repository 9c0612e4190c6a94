# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Optimizers over those of the library."""
import copy
from collections.abc import Mapping

import devtensor
from devtensor import _C
from devtensor._C import Tensor
from devtensor.nn._state import as_tensor, entries

__all__ = ['Optimizer', 'SGD', 'Adam', 'AdamW', 'Adagrad', 'RMSprop']


class _State(Mapping):
    """Parameter -> dict of its state tensors, on the optimizer's memory. Parameters that were in no step are left
    out."""

    def __init__(self, optimizer):
        self._optimizer = optimizer

    def _find(self, parameter):
        for g, group in enumerate(self._optimizer.param_groups):
            for i, p in enumerate(group['params']):
                if p is parameter:
                    return self._optimizer._c.state(g, i)
        return {}

    def __getitem__(self, parameter):
        """{} for a parameter without state, as PyTorch."""
        return self._find(parameter)

    def __contains__(self, parameter):
        return bool(self._find(parameter))

    def _pairs(self):
        for g, group in enumerate(self._optimizer.param_groups):
            for i, p in enumerate(group['params']):
                state = self._optimizer._c.state(g, i)
                if state:
                    yield p, state

    def __iter__(self):
        return (p for p, _ in self._pairs())

    def __len__(self):
        return sum(1 for _ in self._pairs())

    def items(self):
        return list(self._pairs())


class Optimizer:
    """params: parameters, pairs of names and parameters, or dicts of groups with options of their own.

    param_groups is a list of dicts: a step reads the options in them, so a change takes effect. zero_grad() removes the
    gradients; a parameter without a gradient is left alone by a step.
    """

    def __init__(self, params, defaults):
        if isinstance(params, Tensor):
            raise TypeError('an optimizer takes a list of parameters, got one tensor')
        groups = list(params)
        if not groups:
            raise ValueError('the optimizer got an empty list of parameters')
        if not isinstance(groups[0], dict):
            groups = [{'params': groups}]
        self.defaults, self.param_groups = defaults, []
        self._c = _C._Optimizer(type(self)._method)
        self._step_pre_hooks, self._step_post_hooks = {}, {}
        for group in groups:
            self.add_param_group(group)

    def add_param_group(self, param_group):
        """Add a dict with 'params' and options."""
        if not isinstance(param_group, dict):
            raise TypeError(f'add_param_group: expected a dict, got {type(param_group).__name__}')
        group, (params,) = dict(param_group), entries(param_group, ['params'], 'add_param_group')
        if isinstance(params, (set, frozenset)):
            raise TypeError('the parameters need an order: give a list, not a set')
        params = [params] if isinstance(params, Tensor) else list(params)
        if params and isinstance(params[0], tuple):
            group['param_names'], params = [name for name, _ in params], [p for _, p in params]
        group['params'] = params
        for name, value in self.defaults.items():
            group.setdefault(name, value)
        self._c.add_group(group)
        self.param_groups.append(group)

    @property
    def state(self):
        return _State(self)

    # ---- steps ----

    def step(self, closure=None):
        """Change the parameters that have a gradient. closure: computes the loss again and its gradients; it is
        returned."""
        loss = None
        if self._step_pre_hooks:
            self._call_hooks(self._step_pre_hooks, closure)
        if closure is not None:
            with devtensor.enable_grad():
                loss = closure()
        self._c.step(self.param_groups)
        if self._step_post_hooks:
            self._call_hooks(self._step_post_hooks, closure)
        return loss

    def zero_grad(self, set_to_none=True):
        """Remove the gradients, or with set_to_none=False fill them with 0."""
        if set_to_none:
            self._c.zero_grad()
            return
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    p.grad.detach().zero_()

    def _call_hooks(self, hooks, closure):
        for hook in list(hooks.values()):
            hook(self, (closure,), {})

    def _add_hook(self, hooks, hook):
        from devtensor.nn.module import RemovableHandle
        handle = RemovableHandle(hooks)
        hooks[handle.id] = hook
        return handle

    def register_step_pre_hook(self, hook):
        """hook(optimizer, args, kwargs) before each step."""
        return self._add_hook(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook):
        """hook(optimizer, args, kwargs) after each step."""
        return self._add_hook(self._step_post_hooks, hook)

    # ---- state ----

    def state_dict(self):
        """{'state': number of the parameter -> tensors, 'param_groups': options and numbers}, as PyTorch's. The
        tensors are on the optimizer's memory."""
        state, groups, n = {}, [], 0
        for g, group in enumerate(self.param_groups):
            numbers = list(range(n, n + len(group['params'])))
            n += len(numbers)
            groups.append({**{k: v for k, v in group.items() if k != 'params'}, 'params': numbers})
            for i, number in enumerate(numbers):
                tensors = self._c.state(g, i)
                if tensors:
                    state[number] = tensors
        return {'state': state, 'param_groups': groups}

    def load_state_dict(self, state_dict):
        """Continue from a state_dict, also one of PyTorch: options of the groups, and copies of the tensors. The
        parameters are in the same order. After an error nothing is changed."""
        groups, state = entries(state_dict, ['param_groups', 'state'], 'load_state_dict')
        if not isinstance(groups, (list, tuple)):
            raise TypeError(f'load_state_dict: param_groups is a list, got {type(groups).__name__}')
        numbers = [list(entries(g, ['params'], f'load_state_dict: group {i}')[0]) for i, g in enumerate(groups)]
        entries(state, [], 'load_state_dict: state')
        sizes = [len(n) for n in numbers]
        if sizes != [len(g['params']) for g in self.param_groups]:
            raise ValueError(f'load_state_dict: groups of {sizes} parameters, the optimizer has '
                             f'{[len(g["params"]) for g in self.param_groups]}')
        place = {number: (g, i) for g, group in enumerate(numbers) for i, number in enumerate(group)}
        new = [{**{k: copy.copy(v) for k, v in theirs.items() if k not in ('params', 'param_names')},
                'params': ours['params']}
               for theirs, ours in zip(groups, self.param_groups)]
        tensors = {}
        for number, values in state.items():
            if number not in place:
                raise ValueError(f'load_state_dict: there is a state of {number!r}, which is in no group')
            g, i = place[number]
            entries(values, [], f'load_state_dict: the state of {number!r}')
            for key, value in values.items():
                if value is not None and self._has_key(key):
                    tensors[f'{g}.{i}.{key}'] = self._state_tensor(key, value, self.param_groups[g]['params'][i])
        self._c.sync(self.param_groups)  # What it refuses could not be restored.
        # Options decide which tensors there are: without momentum, those of momentum are dropped.
        before = {f'{g}.{i}.{key}': t for g, group in enumerate(self.param_groups) for i in range(len(group['params']))
                  for key, t in self._c.state(g, i).items()}
        try:
            self._c.sync(new)
            self._c.load_state(tensors)
        except BaseException:
            self._c.sync(self.param_groups)
            self._c.load_state(before)
            raise
        for ours, theirs in zip(self.param_groups, new):
            ours.update(theirs)

    def _has_key(self, key):
        return key in type(self)._state_keys

    @staticmethod
    def _state_tensor(key, value, parameter):
        value = as_tensor(value).detach()
        return value.to(_C.float32).reshape([]) if key == 'step' else value.to(parameter.dtype)

    def __getstate__(self):
        raise TypeError('an optimizer cannot be pickled: save its state_dict()')

    def __repr__(self):
        lines = [f'{type(self).__name__} (']
        for i, group in enumerate(self.param_groups):
            lines.append(f'Parameter Group {i}')
            lines += [f'    {key}: {group[key]}' for key in sorted(group) if key not in ('params', 'param_names')]
        return '\n'.join(lines) + '\n)'


def _plain(name, differentiable):
    if differentiable:
        raise NotImplementedError(f'{name}: a step cannot be recorded; differentiable is False')


# foreach, fused and capturable choose an implementation in PyTorch; there is one here.

class SGD(Optimizer):
    """Gradient descent with momentum."""
    _method, _state_keys = 'SGD', {'momentum_buffer'}

    def __init__(self, params, lr=1e-3, momentum=0, dampening=0, weight_decay=0, nesterov=False, *, maximize=False,
                 foreach=None,
                 differentiable=False, fused=None):
        _plain('SGD', differentiable)
        super().__init__(params, {'lr': lr, 'momentum': momentum, 'dampening': dampening, 'weight_decay': weight_decay,
                                  'nesterov': nesterov, 'maximize': maximize})


class Adam(Optimizer):
    """Adam; weight_decay is added to the gradient."""
    _method, _state_keys = 'Adam', {'step', 'exp_avg', 'exp_avg_sq', 'max_exp_avg_sq'}
    _decay = 0

    def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8, weight_decay=None, amsgrad=False, *, foreach=None,
                 maximize=False, capturable=False, differentiable=False, fused=None):
        _plain(type(self).__name__, differentiable)
        super().__init__(params, {'lr': lr, 'betas': betas, 'eps': eps, 'amsgrad': amsgrad, 'maximize': maximize,
                                  'weight_decay': self._decay if weight_decay is None else weight_decay})


class AdamW(Adam):
    """Adam; weight_decay (0.01) is applied to the parameter itself."""
    _method, _decay = 'AdamW', 1e-2


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of squares of all gradients."""
    _method, _state_keys = 'Adagrad', {'step', 'sum'}

    def __init__(self, params, lr=1e-2, lr_decay=0, weight_decay=0, initial_accumulator_value=0, eps=1e-10,
                 foreach=None, *,
                 maximize=False, differentiable=False, fused=None):
        _plain('Adagrad', differentiable)
        super().__init__(params, {'lr': lr, 'lr_decay': lr_decay, 'weight_decay': weight_decay, 'eps': eps,
                                  'maximize': maximize,
                                  'initial_accumulator_value': initial_accumulator_value})


class RMSprop(Optimizer):
    """Steps divided by the root of a moving average of squares of the gradients."""
    _method, _state_keys = 'RMSprop', {'square_avg', 'grad_avg', 'momentum_buffer'}

    def __init__(self, params, lr=1e-2, alpha=0.99, eps=1e-8, weight_decay=0, momentum=0, centered=False,
                 capturable=False,
                 foreach=None, maximize=False, differentiable=False):
        _plain('RMSprop', differentiable)
        super().__init__(params, {'lr': lr, 'alpha': alpha, 'eps': eps, 'weight_decay': weight_decay,
                                  'momentum': momentum,
                                  'centered': centered, 'maximize': maximize})
