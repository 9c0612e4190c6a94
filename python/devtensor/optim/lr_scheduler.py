# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Learning rates as functions of the number of steps: step() after each step of the optimizer, or after each epoch.

The values are the library's closed forms (<tensor/optim.h>), which are PyTorch's: a rate depends on the group's
initial rate and the number of steps alone, so one that was changed by hand in between is overwritten by the next
step().
"""
import bisect
import math

from devtensor import _C
from devtensor.nn._state import entries
from devtensor.optim.optimizer import Optimizer

__all__ = ['LRScheduler', 'LambdaLR', 'MultiplicativeLR', 'StepLR', 'MultiStepLR', 'ConstantLR', 'LinearLR',
           'ExponentialLR',
           'PolynomialLR', 'CosineAnnealingLR', 'CosineAnnealingWarmRestarts', 'OneCycleLR', 'SequentialLR',
           'ReduceLROnPlateau']


class LRScheduler:
    """last_epoch: -1 at the beginning; the number of steps made to continue, with 'initial_lr' in the groups."""

    def __init__(self, optimizer, last_epoch=-1):
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f'{type(self).__name__}: {type(optimizer).__name__} is no optimizer')
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault('initial_lr', group['lr'])
            elif 'initial_lr' not in group:
                raise KeyError(f"group {i} has no 'initial_lr', from which {type(self).__name__} continues")
        self.base_lrs = [group['initial_lr'] for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        self.step()

    def lr_at(self, step, base_lr):
        """The rate after `step` steps of a group whose initial rate is base_lr."""
        raise NotImplementedError

    def get_lr(self):
        return [self.lr_at(self.last_epoch, lr) for lr in self.base_lrs]

    def get_last_lr(self):
        """The rates of the groups."""
        return [group['lr'] for group in self.optimizer.param_groups]

    def step(self, epoch=None):
        """Set the rates for the next step, or those after `epoch` steps."""
        last = self.last_epoch + 1 if epoch is None else epoch
        before, self.last_epoch = self.last_epoch, last
        try:
            rates = self.get_lr()
        except BaseException:
            self.last_epoch = before
            raise
        for group, lr in zip(self.optimizer.param_groups, rates):
            group['lr'] = lr

    def state_dict(self):
        """The state that the schedule continues from: numbers and lists."""
        return {key: value for key, value in self.__dict__.items() if key != 'optimizer' and not callable(value)}

    def load_state_dict(self, state_dict):
        entries(state_dict, [], type(self).__name__)
        self.__dict__.update(state_dict)


class LambdaLR(LRScheduler):
    """The initial rate times lr_lambda(steps): a function, or a list with one for each group."""

    def __init__(self, optimizer, lr_lambda, last_epoch=-1):
        n = len(optimizer.param_groups)
        self.lr_lambdas = list(lr_lambda) if isinstance(lr_lambda, (list, tuple)) else [lr_lambda] * n
        if len(self.lr_lambdas) != n:
            raise ValueError(f'{type(self).__name__}: {len(self.lr_lambdas)} functions for {n} groups')
        super().__init__(optimizer, last_epoch)

    def get_lr(self):
        return [lr * f(self.last_epoch) for lr, f in zip(self.base_lrs, self.lr_lambdas)]

    def state_dict(self):
        """Without the functions."""
        return {key: value for key, value in super().state_dict().items() if key != 'lr_lambdas'}


class MultiplicativeLR(LambdaLR):
    """The rate times lr_lambda(steps) in each step."""

    def get_lr(self):
        rates = [group['lr'] for group in self.optimizer.param_groups]
        return [lr * f(self.last_epoch) for lr, f in zip(rates, self.lr_lambdas)] if self.last_epoch > 0 else rates


class StepLR(LRScheduler):
    """The rate times gamma after every step_size steps."""

    def __init__(self, optimizer, step_size, gamma=0.1, last_epoch=-1):
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return _C._schedule_lr('step', base_lr, step, steps=self.step_size, gamma=self.gamma)


class MultiStepLR(LRScheduler):
    """The rate times gamma at each of the milestones."""

    def __init__(self, optimizer, milestones, gamma=0.1, last_epoch=-1):
        self.milestones, self.gamma = sorted(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return _C._schedule_lr('multi_step', base_lr, step, milestones=self.milestones, gamma=self.gamma)


class ExponentialLR(LRScheduler):
    """The rate times gamma in each step."""

    def __init__(self, optimizer, gamma, last_epoch=-1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return _C._schedule_lr('exponential', base_lr, step, gamma=self.gamma)


class LinearLR(LRScheduler):
    """From start_factor to end_factor times the rate in total_iters steps."""

    def __init__(self, optimizer, start_factor=1.0 / 3, end_factor=1.0, total_iters=5, last_epoch=-1):
        if not 0 < start_factor <= 1 or not 0 <= end_factor <= 1:
            raise ValueError('LinearLR: start_factor is above 0, both factors are at most 1')
        self.start_factor, self.end_factor, self.total_iters = start_factor, end_factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return _C._schedule_lr('linear', base_lr, step, steps=self.total_iters, start_factor=self.start_factor,
                               end_factor=self.end_factor)


class ConstantLR(LRScheduler):
    """factor times the rate for total_iters steps."""

    def __init__(self, optimizer, factor=1.0 / 3, total_iters=5, last_epoch=-1):
        if not 0 <= factor <= 1:
            raise ValueError(f'ConstantLR: factor is {factor}')
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return base_lr * (self.factor if step < self.total_iters else 1)


class PolynomialLR(LRScheduler):
    """Down to 0 in total_iters steps, as a power of what is left."""

    def __init__(self, optimizer, total_iters=5, power=1.0, last_epoch=-1):
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return base_lr * (1 - min(step, self.total_iters) / self.total_iters) ** self.power


class CosineAnnealingLR(LRScheduler):
    """Down to eta_min in T_max steps, and up again after that."""

    def __init__(self, optimizer, T_max, eta_min=0.0, last_epoch=-1):
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        return _C._schedule_lr('cosine', base_lr, step, steps=self.T_max, min_lr=self.eta_min)


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down to eta_min in T_0 steps, then in T_0 * T_mult steps from the beginning, and so on."""

    def __init__(self, optimizer, T_0, T_mult=1, eta_min=0.0, last_epoch=-1):
        if T_0 <= 0 or T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError('CosineAnnealingWarmRestarts: T_0 is positive, T_mult an int of at least 1')
        self.T_0, self.T_mult, self.eta_min = T_0, T_mult, eta_min
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        period = self.T_0
        while step >= period:
            step -= period
            period *= self.T_mult
        return self.eta_min + (base_lr - self.eta_min) * (1 + math.cos(math.pi * step / period)) / 2


class OneCycleLR(LRScheduler):
    """Up from max_lr / div_factor to max_lr, and down to that divided by final_div_factor, in total_steps steps.
    cycle_momentum: momentum, or the first of betas, goes from max_momentum down to base_momentum and back."""

    def __init__(self, optimizer, max_lr, total_steps=None, epochs=None, steps_per_epoch=None, pct_start=0.3,
                 anneal_strategy='cos', cycle_momentum=True, base_momentum=0.85, max_momentum=0.95, div_factor=25.0,
                 final_div_factor=1e4, three_phase=False, last_epoch=-1):
        if total_steps is None and (epochs is None or steps_per_epoch is None):
            raise ValueError('OneCycleLR: total_steps, or epochs and steps_per_epoch, are needed')
        if anneal_strategy not in ('cos', 'linear'):
            raise ValueError(f"OneCycleLR: anneal_strategy is 'cos' or 'linear', not {anneal_strategy!r}")
        n = len(optimizer.param_groups)
        self.total_steps = epochs * steps_per_epoch if total_steps is None else total_steps
        self.pct_start, self.anneal_strategy, self.three_phase = pct_start, anneal_strategy, three_phase
        self.div_factor, self.final_div_factor, self.cycle_momentum = div_factor, final_div_factor, cycle_momentum
        self.max_lrs = list(max_lr) if isinstance(max_lr, (list, tuple)) else [max_lr] * n
        self.base_momentum, self.max_momentum = base_momentum, max_momentum
        if len(self.max_lrs) != n:
            raise ValueError(f'OneCycleLR: {len(self.max_lrs)} rates for {n} groups')
        if cycle_momentum and not any('betas' in group or 'momentum' in group for group in optimizer.param_groups):
            raise ValueError('OneCycleLR: cycle_momentum needs an optimizer with momentum')
        if last_epoch == -1:
            for group, lr in zip(optimizer.param_groups, self.max_lrs):
                group['initial_lr'] = lr / div_factor
        super().__init__(optimizer, last_epoch)

    def lr_at(self, step, base_lr):
        # A loop calls step() after its last step, too: the rate stays then.
        step -= step == self.total_steps
        return _C._schedule_lr('one_cycle', base_lr, step, steps=self.total_steps, pct_start=self.pct_start,
                               div_factor=self.div_factor, final_div_factor=self.final_div_factor,
                               linear=self.anneal_strategy == 'linear', three_phase=self.three_phase)

    def get_lr(self):
        return [self.lr_at(self.last_epoch, lr) for lr in self.max_lrs]

    def _momentum(self):
        """Between the ends of the phase that the step is in."""
        first, last = self.pct_start * self.total_steps - 1, self.total_steps - 1
        step = min(self.last_epoch, last)
        ends = [0, first, 2 * first, last] if self.three_phase else [0, first, last]
        values = [self.max_momentum, self.base_momentum, self.max_momentum, self.max_momentum]
        phase = next((i for i, end in enumerate(ends[1:]) if step <= end), len(ends) - 2)
        start, end, begin, stop = values[phase], values[phase + 1], ends[phase], ends[phase + 1]
        part = (step - begin) / (stop - begin)
        if self.anneal_strategy == 'linear':
            return start + (end - start) * part
        return end + (start - end) / 2 * (1 + math.cos(math.pi * part))

    def step(self, epoch=None):
        super().step(epoch)
        if not self.cycle_momentum:
            return
        for group in self.optimizer.param_groups:
            if 'betas' in group:
                group['betas'] = (self._momentum(), *group['betas'][1:])
            elif 'momentum' in group:
                group['momentum'] = self._momentum()


class SequentialLR(LRScheduler):
    """One scheduler after the other; each begins with its first step at its milestone."""

    def __init__(self, optimizer, schedulers, milestones, last_epoch=-1):
        if len(milestones) != len(schedulers) - 1 or not schedulers:
            raise ValueError(f'SequentialLR: {len(schedulers)} schedulers need {len(schedulers) - 1} milestones')
        if any(s.optimizer is not optimizer for s in schedulers):
            raise ValueError('SequentialLR: a scheduler has another optimizer')
        self.optimizer, self._schedulers, self._milestones = optimizer, list(schedulers), list(milestones)
        self.last_epoch = last_epoch + 1
        # The last scheduler that was made has set the rates.
        self._schedulers[0].step(0)

    def step(self):
        self.last_epoch += 1
        i = bisect.bisect_right(self._milestones, self.last_epoch)
        if i > 0 and self._milestones[i - 1] == self.last_epoch:
            self._schedulers[i].step(0)
        else:
            self._schedulers[i].step()

    def state_dict(self):
        return {'last_epoch': self.last_epoch, 'milestones': self._milestones,
                'schedulers': [s.state_dict() for s in self._schedulers]}

    def load_state_dict(self, state_dict):
        last_epoch, milestones, states = entries(state_dict, ['last_epoch', 'milestones', 'schedulers'],
                                                 'SequentialLR')
        milestones, states = list(milestones), list(states)
        if len(states) != len(self._schedulers) or len(milestones) != len(self._milestones):
            raise ValueError(f'SequentialLR: the state is that of {len(states)} schedulers and {len(milestones)} '
                             f'milestones, there are {len(self._schedulers)} and {len(self._milestones)}')
        for state in states:
            entries(state, [], 'SequentialLR')
        self.last_epoch, self._milestones = last_epoch, milestones
        for scheduler, state in zip(self._schedulers, states):
            scheduler.load_state_dict(state)


class ReduceLROnPlateau(LRScheduler):
    """Lower the rates when a measure stops improving: step(measure) after each epoch."""

    def __init__(self, optimizer, mode='min', factor=0.1, patience=10, threshold=1e-4, threshold_mode='rel', cooldown=0,
                 min_lr=0.0, eps=1e-8):
        if mode not in ('min', 'max') or threshold_mode not in ('rel', 'abs'):
            raise ValueError(
                f"mode is 'min' or 'max', threshold_mode 'rel' or 'abs', not {mode!r} and {threshold_mode!r}")
        if not 0 <= factor < 1:
            raise ValueError(f'factor is {factor}; it is at least 0 and less than 1')
        if not isinstance(optimizer, Optimizer):
            raise TypeError(f'ReduceLROnPlateau: {type(optimizer).__name__} is no optimizer')
        self.optimizer, self.mode, self.factor, self.patience = optimizer, mode, factor, patience
        self.threshold, self.threshold_mode, self.cooldown, self.eps = threshold, threshold_mode, cooldown, eps
        n = len(optimizer.param_groups)
        self.min_lrs = list(min_lr) if isinstance(min_lr, (list, tuple)) else [min_lr] * n
        if len(self.min_lrs) != n:
            raise ValueError(f'ReduceLROnPlateau: {len(self.min_lrs)} rates for {n} groups')
        self.begun, self.best, self.num_bad_epochs, self.cooldown_counter, self.last_epoch = False, 0.0, 0, 0, 0

    def step(self, metrics, epoch=None):
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self.optimizer._c.sync(self.optimizer.param_groups)
        lowered, (self.begun, self.best, self.num_bad_epochs, self.cooldown_counter) = _C._plateau_step(
            self.optimizer._c, float(metrics), self.factor, self.threshold, 0.0, (self.patience, self.cooldown),
            (self.mode == 'max', self.threshold_mode == 'abs'),
            (self.begun, self.best, self.num_bad_epochs, self.cooldown_counter))
        if not lowered:
            return
        for group, lr, least in zip(self.optimizer.param_groups, self.optimizer._c.lr(), self.min_lrs):
            lr = max(lr, least)
            if group['lr'] - lr > self.eps:
                group['lr'] = lr
