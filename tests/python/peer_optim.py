#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Optimizers and schedules beside PyTorch's. Run by test_optim.py with an interpreter that has PyTorch. Prints a line
for each difference; exit status 1 if there is one."""
import sys

import torch

import devtensor as dt

OPTIMIZERS = [
    ('SGD', {}), ('SGD', {'momentum': 0.9, 'dampening': 0.1, 'weight_decay': 0.01}),
    ('SGD', {'momentum': 0.9, 'nesterov': True}),
    ('Adam', {}), ('Adam', {'weight_decay': 0.1, 'amsgrad': True,
     'betas': (0.8, 0.9), 'eps': 1e-4}), ('AdamW', {'maximize': True}),
    ('AdamW', {'weight_decay': 0}), ('Adagrad', {'lr_decay': 0.1, 'initial_accumulator_value': 0.2}), ('RMSprop', {}),
    ('RMSprop', {'momentum': 0.9, 'centered': True, 'weight_decay': 0.01, 'alpha': 0.9}),
]

SCHEDULES = [
    's.StepLR(o, 3, 0.5)', 's.MultiStepLR(o, [2, 5, 5, 7], 0.3)', 's.ExponentialLR(o, 0.9)',
    's.LinearLR(o, 0.2, 0.8, 6)',
    's.ConstantLR(o, 0.2, 4)', 's.PolynomialLR(o, 6, 2.0)', 's.CosineAnnealingLR(o, 5, 0.01)',
    's.CosineAnnealingWarmRestarts(o, 2, 2, 0.01)', 's.LambdaLR(o, [lambda n: 1 / (n + 1), lambda n: 0.9 ** n])',
    's.MultiplicativeLR(o, lambda n: 0.9)', 's.OneCycleLR(o, [0.2, 0.4], 13)',
    's.OneCycleLR(o, 0.2, 14, anneal_strategy="linear", three_phase=True)',
    's.SequentialLR(o, [s.LinearLR(o, 0.1, 1, 4), s.CosineAnnealingLR(o, 8)], [4])',
    's.SequentialLR(o, [s.ConstantLR(o, 0.1, 2), s.ExponentialLR(o, 0.9), s.StepLR(o, 2)], [2, 6])',
]


def steps(t, parameter, optimizer, gradients):
    for gradient in gradients:
        parameter.grad = gradient if t is torch else dt.tensor(gradient.numpy())
        optimizer.step()


def check_optimizer(name, options):
    """The second half of the steps with a state dict of PyTorch."""
    start, gradients = torch.rand(5, dtype=torch.float64), torch.rand(12, 5, dtype=torch.float64) - 0.4
    theirs, ours = torch.nn.Parameter(start.clone()), dt.nn.Parameter(dt.tensor(start.numpy()))
    a, b = getattr(torch.optim, name)([theirs], lr=0.1, **options), getattr(dt.optim, name)([ours], lr=0.1, **options)
    worst = 0
    for half in (gradients[:6], gradients[6:]):
        steps(torch, theirs, a, half)
        steps(dt, ours, b, half)
        worst = max(
    worst,
    (torch.tensor(
        ours.detach().tolist(),
        dtype=torch.float64) -
         theirs.detach()).abs().max().item())
        c = getattr(dt.optim, name)([ours], lr=0.7)
        c.load_state_dict(a.state_dict())
        b = c
    return worst


def rates(t, make, name, options):
    parameters = [t.nn.Parameter(t.ones([1])) for _ in range(2)]
    o = getattr(t.optim, name)([{'params': [parameters[0]]}, {'params': [parameters[1]], 'lr': 0.3}], lr=0.1, **options)
    s, found = eval(make, {'s': t.optim.lr_scheduler, 'o': o}), []
    for _ in range(12):
        for group in o.param_groups:
            found += [group['lr'], group['betas'][0] if 'betas' in group else group['momentum']]
        o.step()
        s.step()
    return found


def main():
    torch.manual_seed(1)
    found = [(f'{name} {options}', check_optimizer(name, options)) for name, options in OPTIMIZERS]
    for make in SCHEDULES:
        for name, options in ('Adam', {}), ('SGD', {'momentum': 0.9}):
            pairs = zip(rates(dt, make, name, options), rates(torch, make, name, options))
            found.append((f'{make} {name}', max(abs(a - b) for a, b in pairs)))
    wrong = [(text, worst) for text, worst in found if not worst < 1e-13]
    for text, worst in wrong:
        print(f'{text}: differs by {worst:.1e}')
    print(f'{len(found)} comparisons, {len(wrong)} differences')
    return len(wrong) > 0


if __name__ == '__main__':
    sys.exit(main())
