#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Programs with hooks of modules in backward, with torch and with devtensor: what the hooks get, the gradients, the
exceptions and the warnings. Run by test_module_hooks.py with an interpreter that has PyTorch. Prints a line for each
difference; exit status 1 if there is one."""
import sys
import warnings

import torch

import devtensor as dt


def plain(value):
    """Tensors as nested lists of rounded numbers."""
    if isinstance(value, (tuple, list)):
        return [plain(v) for v in value]
    if isinstance(value, float):
        return round(value, 10)
    return plain(value.tolist()) if hasattr(value, 'tolist') else value


def model(lib):
    """Linear(3, 2) with fixed numbers."""
    m = lib.nn.Linear(3, 2).double()
    with lib.no_grad():
        m.weight.copy_(lib.arange(6, dtype=lib.float64).reshape(2, 3) / 4)
        m.bias.copy_(lib.arange(2, dtype=lib.float64))
    return m


def data(lib, grad=True):
    return (lib.arange(12, dtype=lib.float64).reshape(4, 3) / 8).requires_grad_(grad)


def logged(log, name, result=None):
    def hook(module, *grads):
        log.append([name, type(module).__name__, plain(grads)])
        return result(*grads) if result else None
    return hook


def grads_of(log, *tensors):
    log.append([plain(t.grad) for t in tensors])


def gradients(lib, log):
    m, x = model(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'first'))
    m.register_full_backward_hook(logged(log, 'before', ), prepend=True)
    m.register_full_backward_pre_hook(logged(log, 'pre'))
    m(x).square().sum().backward()
    grads_of(log, x, m.weight, m.bias)


def replaced(lib, log):
    m, x = model(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'hook', lambda gi, go: (gi[0] * 10,)))
    m.register_full_backward_hook(logged(log, 'hook 2', lambda gi, go: (gi[0] + 1,)))
    m.register_full_backward_pre_hook(logged(log, 'pre', lambda go: (go[0] * 2,)))
    m(x).square().sum().backward()
    grads_of(log, x, m.weight, m.bias)


def no_input_requires_grad(lib, log):
    m = model(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    m(data(lib, False)).sum().backward()
    grads_of(log, m.weight)
    m.register_full_backward_hook(lambda module, gi, go: (gi[0], None, go[0]))
    m(data(lib, False)).sum().backward()


def only_pre_hooks_without_inputs(lib, log):
    m = model(lib)
    m.register_full_backward_pre_hook(logged(log, 'pre', lambda go: (go[0] * 2,)))
    m(data(lib, False)).sum().backward()
    grads_of(log, m.weight)


def several_arguments(lib, log):
    class Several(lib.nn.Module):
        def forward(self, a, number, b, c):
            return a * number + c, b * 2, number

    m = Several()
    a, b, c = data(lib), data(lib, False), data(lib)
    # PyTorch gives zeros for b, which requires no gradient.
    m.register_full_backward_hook(lambda module, gi, go: log.append(plain([gi[0], gi[1], gi[3], len(gi), go])))
    m.register_full_backward_pre_hook(logged(log, 'pre'))
    out = m(a, 3, b, c)
    log.append([len(out), out[0].requires_grad, out[1].requires_grad])
    out[0].sum().backward()
    grads_of(log, a, b, c)


def one_of_two_outputs(lib, log):
    class Two(lib.nn.Module):
        def forward(self, a, b):
            return a * 2, b * 3

    m, a, b = Two(), data(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    m(a, b)[0].sum().backward()
    grads_of(log, a, b)


def wrong_number_of_gradients(lib, log):
    m = model(lib)
    m.register_full_backward_hook(lambda module, gi, go: (gi[0], gi[0]))
    m(data(lib)).sum().backward()


def wrong_number_from_pre_hook(lib, log):
    m = model(lib)
    m.register_full_backward_pre_hook(lambda module, go: (go[0], go[0]))
    m(data(lib)).sum().backward()


def hook_raises(lib, log):
    m = model(lib)

    def fail(module, gi, go):
        raise LookupError('own')
    m.register_full_backward_hook(fail)
    m(data(lib)).sum().backward()


def dict_as_result(lib, log):
    class Dict(lib.nn.Module):
        def forward(self, a):
            return {'y': a * 2}

    m, x = Dict(), data(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    m(x)['y'].sum().backward()
    grads_of(log, x)


def nested_modules(lib, log):
    m = lib.nn.Sequential(model(lib), lib.nn.Tanh())
    for part in m.modules():
        part.register_full_backward_hook(logged(log, 'hook'))
        part.register_full_backward_pre_hook(logged(log, 'pre'))
    x = data(lib)
    m(x).sum().backward()
    grads_of(log, x)


def second_derivatives(lib, log):
    m, x = lib.nn.Sequential(model(lib), lib.nn.Tanh()), data(lib)
    m.register_full_backward_hook(logged(log, 'hook', lambda gi, go: (gi[0] * 2,)))
    g, = lib.autograd.grad(m(x).sum(), [x], create_graph=True)
    log.append(plain(g))
    g.square().sum().backward()
    grads_of(log, x, m[0].weight)


def called_twice(lib, log):
    m, x = model(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    (m(x) + m(x * 2)).sum().backward()
    grads_of(log, x)


def removed(lib, log):
    m, x = model(lib), data(lib)
    handle = m.register_full_backward_hook(logged(log, 'hook'))
    other = m.register_full_backward_pre_hook(logged(log, 'pre'))
    handle.remove()
    out = m(x)
    other.remove()
    out.sum().backward()
    m(x).sum().backward()
    log.append(m(x).grad_fn is not None)


def without_recording(lib, log):
    m, x = model(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    with lib.no_grad():
        log.append([plain(m(x)), m(x).requires_grad])


def retained(lib, log):
    m, x = model(lib), data(lib)
    m.register_full_backward_hook(logged(log, 'hook'))
    loss = m(x).square().sum()
    loss.backward(retain_graph=True)
    loss.backward()
    grads_of(log, x)


def forward_hooks_too(lib, log):
    m, x = model(lib), data(lib)
    m.register_forward_pre_hook(lambda module, args: (args[0] * 2,))
    m.register_forward_hook(lambda module, args, out: out * 3)
    m.register_full_backward_hook(logged(log, 'hook'))
    m(x).sum().backward()
    grads_of(log, x)


PROGRAMS = [gradients, replaced, no_input_requires_grad, only_pre_hooks_without_inputs, several_arguments,
            one_of_two_outputs, wrong_number_of_gradients, wrong_number_from_pre_hook, hook_raises, dict_as_result,
            nested_modules, second_derivatives, called_twice, removed, without_recording, retained, forward_hooks_too]


def outcome(program, lib):
    log = []
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter('always')
        try:
            program(lib, log)
        except Exception as error:  # noqa: BLE001
            log.append([type(error).__name__, str(error)])
    # PyTorch compiles some of its formulas when they are first needed.
    texts = {str(w.message)[:60].replace('devtensor.', 'torch.') for w in warned}
    return log, sorted(t for t in texts if 'torch.jit' not in t)


def difference(want, got):
    """The first entries of the logs that differ, and the warnings."""
    pairs = [(a, b) for a, b in zip(want[0], got[0]) if a != b] or [(want[0], got[0])]
    return f'torch     {pairs[0][0]}\n  devtensor {pairs[0][1]}\n  warnings {want[1]} {got[1]}'


def compare(programs):
    """Prints what differs; the exit status."""
    failed = 0
    for program in programs:
        want, got = outcome(program, torch), outcome(program, dt)
        if want != got or not want[0]:
            failed += 1
            print(f'{program.__name__}:\n  {difference(want, got)}')
    print(f'{len(programs)} programs, {failed} differ')
    return failed > 0


if __name__ == '__main__':
    sys.exit(compare(PROGRAMS))
