# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Runs random programs with PyTorch and libtensor: views, in-place changes, no_grad, gradients.

A program is 5 to 30 statements on f64 tensors of a few elements. After each, every variable must have the same
values, the same requires_grad and share memory with the same variables in both; a statement that
one of them refuses must fail in the other, too. At the end gradients of a weighted sum with respect to the leaves
are compared, and their gradients.

  programs.py [--programs N] [--seed S] [--first N] [--most N]

Program number N of a seed is the same on every machine. A difference is printed with the shortest
program found that has it.
"""
import argparse
import json
import os
import random
import sys

os.environ.setdefault('OMP_NUM_THREADS', '1')
import torch

import boxed
import bridge
from program import statement, text, variable, without

torch.set_num_threads(1)

CREATE_GRAPH = 2  # of include/tensor/autograd.h

# PyTorch refuses to change memory that it reads in another order; libtensor copies it first. PyTorch refuses to read
# a view made under no_grad whose memory has changed; in libtensor the view has no history, and its requires_grad is
# false, while PyTorch's is true.
MORE = ['refer to a single memory location', 'its base or another view of its base has been modified',
        'If you want to use a computed variable in a subgraph',
        'does not support automatic differentiation for outputs with complex dtype']
# libtensor refuses to write to elements that share memory; PyTorch's result depends on the order of the writes.
LESS = ['share memory']


class Different(Exception):
    pass


class Stopped(Exception):
    """The remaining statements cannot be compared."""


# ---- the two libraries ------------------------------------------------------------------------------------

def substitute(x, variables):
    if isinstance(x, tuple) and len(x) == 2 and x[0] == '$':
        return variables[x[1]]
    if isinstance(x, list):
        return [substitute(i, variables) for i in x]
    return x


def leaf_values(shape, seed):
    g = torch.Generator().manual_seed(seed)
    return torch.randn(shape, generator=g, dtype=torch.float64)


def leads_to_a_leaf(t):
    """Whether a gradient of t reaches a leaf. PyTorch's requires_grad is also true for views made under no_grad,
    and for tensors computed from them, although they have no gradient."""
    if not t.requires_grad:
        return False
    try:
        nodes, seen = [torch.autograd.graph.get_gradient_edge(t).node], set()
    except AssertionError:
        return False
    except RuntimeError as e:
        if 'created in no_grad mode' in str(e):
            raise Stopped
        raise
    while nodes:
        node = nodes.pop()
        if node is None or node in seen:
            continue
        if node.name() == 'torch::autograd::AccumulateGrad':
            return True
        seen.add(node)
        nodes += [n for n, _ in node.next_functions]
    return False


class Theirs:
    def __init__(self):
        self.variables = []

    def run(self, name, args, quiet):
        if name == 'leaf':
            t = leaf_values(args['shape'], args['seed']).requires_grad_(args['grad'])
        elif name == 'requires_grad':
            t = substitute(args['self'], self.variables)
            if t._is_view() or t.requires_grad != leads_to_a_leaf(t):
                raise Stopped  # PyTorch checks a view's base at each use, libtensor when the view is made
            t.requires_grad_(args['value'])
            return False
        else:
            base, _, overload = name.partition('.')
            func = getattr(getattr(torch.ops.aten, base), overload or 'default')
            with torch.set_grad_enabled(not quiet):
                t = func(**{k: substitute(v, self.variables) for k, v in args.items()})
            if func._schema.is_mutable or any(t is v for v in self.variables):
                return False
        self.variables.append(t)
        return True

    def look(self, i):
        return self.variables[i].detach().resolve_conj()

    def requires_grad(self, i):
        return leads_to_a_leaf(self.variables[i])

    def shares(self, i, j):
        a, b = self.variables[i], self.variables[j]
        return a.untyped_storage().data_ptr() == b.untyped_storage().data_ptr()


class Ours:
    def __init__(self, lib):
        self.lib, self.variables = lib, []
        lib.so.tensor_set_grad_enabled.restype = bool

    def run(self, name, args, quiet):
        if name == 'leaf':
            values = leaf_values(args['shape'], args['seed'])
            t = self.lib.storage('f64', values.numpy().tobytes(), sizes=args['shape'])
            self.lib.check(self.lib.so.tensor_set_requires_grad(t.ptr, args['grad']))
        elif name == 'requires_grad':
            t = substitute(args['self'], self.variables)
            self.lib.check(self.lib.so.tensor_set_requires_grad(t.ptr, args['value']))
            return False
        else:
            op = self.lib.ops[name]
            before = self.lib.so.tensor_set_grad_enabled(not quiet)
            try:
                rets = self.lib.call(op, {k: substitute(v, self.variables) for k, v in args.items()})
            finally:
                self.lib.so.tensor_set_grad_enabled(before)
            if op.variant != 'function':
                return False
            t = rets[0]
        self.variables.append(t)
        return True

    def look(self, i):
        return bridge.look(self.variables[i])

    def requires_grad(self, i):
        return bool(self.lib.so.tensor_requires_grad(self.variables[i].ptr))

    def shares(self, i, j):
        return bool(self.lib.so.tensor_shares_storage(self.variables[i].ptr, self.variables[j].ptr))


def attempt(machine, s):
    try:
        return machine.run(*s), None
    except (boxed.Unsupported, Stopped):
        raise
    except Exception as e:
        return None, str(e).split('\n')[0]


# ---- comparison -------------------------------------------------------------------------------------------

def check_values(ours, theirs, what):
    if list(ours.shape) != list(theirs.shape):
        raise Different(f'shape: {what} is {list(ours.shape)}, PyTorch has {list(theirs.shape)}')
    if ours.dtype != theirs.dtype:
        raise Different(f'dtype: {what} is {ours.dtype}, PyTorch has {theirs.dtype}')
    # second derivatives of constants are differences of large numbers
    atol = 1e-8 if what.startswith('gradient 2') else 1e-10
    if not torch.allclose(ours, theirs, 1e-9, atol, equal_nan=True):
        if what.startswith('gradient') and theirs.isnan().any():
            raise Stopped  # PyTorch multiplies infinity by the zero gradient of the overwritten part
        raise Different(f'values: {what} is {ours.tolist()}, PyTorch has {theirs.tolist()}')


def check_state(ours, theirs):
    for i in range(len(theirs.variables)):
        check_values(ours.look(i), theirs.look(i), f'v{i}')
        if ours.requires_grad(i) != theirs.requires_grad(i):
            raise Different(f'requires_grad: of v{i} is {ours.requires_grad(i)}')
    if list(theirs.variables[-1].stride()) != ours.variables[-1].strides:
        raise Stopped  # results of elementwise operators may have another order of strides, and then reshape copies
    for i in range(len(theirs.variables)):
        a, b = theirs.variables[i].numel(), theirs.variables[-1].numel()
        if a and b and ours.shares(i, -1) != theirs.shares(i, -1):
            raise Different(f'memory: v{i} and the last variable share {ours.shares(i, -1)}')


def weights(t, first):
    w = torch.cos(torch.arange(t.numel(), dtype=torch.float64) + first).reshape(t.shape)
    return w.to(t.dtype)


def their_gradients(outputs, leaves, first):
    return torch.autograd.grad([o for o in outputs], leaves, [weights(o, first) for o in outputs],
                               create_graph=True, allow_unused=True)


def our_gradients(lib, outputs, leaves, grads):
    def array(ts):
        return (boxed.C.c_void_p * max(len(ts), 1))(*[t.ptr for t in ts])
    o, g, i, res = array(outputs), array(grads), array(leaves), array([])
    res = (boxed.C.c_void_p * max(len(leaves), 1))()
    lib.check(lib.so.tensor_backward_ex(boxed.Ints(boxed.C.addressof(o), len(outputs)), g,
                                        boxed.Ints(boxed.C.addressof(i), len(leaves)), res,
                                        CREATE_GRAPH))
    return [boxed.Tensor(lib, p) if p else None for p in res[:len(leaves)]]


def check_gradients(lib, ours, theirs):
    """Gradients of all outputs with history with respect to all leaves, and the gradients of these."""
    with_grad = [i for i in range(len(theirs.variables)) if theirs.requires_grad(i)]
    leaves = [i for i in with_grad if theirs.variables[i].is_leaf]
    outputs = [i for i in with_grad if not theirs.variables[i].is_leaf]
    a, b = [theirs.variables[i] for i in outputs], [ours.variables[i] for i in outputs]
    la, lb = [theirs.variables[i] for i in leaves], [ours.variables[i] for i in leaves]
    for order in (1, 2):
        if not a or not la:
            return
        refused = failed = None
        try:
            ga = their_gradients(a, la, order)
        except Exception as e:
            refused = str(e).split('\n')[0]
        ws = [weights(t, order) for t in a]
        call = bridge.Call(lib)
        try:
            gb = our_gradients(lib, b, lb, [call.tensor(w) for w in ws])
        except boxed.Failed as e:
            failed = e.text
        if refused or failed:
            if bool(refused) != bool(failed):
                if refused and 'modified by an inplace operation' in refused and order == 1:
                    # The gradient of values that zero_ or copy_ overwrote is 0; libtensor reads no saved tensor for it.
                    return
                if failed and 'mm' in failed and 'was changed in place' in failed:
                    return  # PyTorch's matmul saves a copy if it changes the shape of an argument
                raise Different(f'backward {order}: ours {failed or "passes"}, PyTorch {refused or "passes"}')
            return
        for i, x, y in zip(leaves, ga, gb):
            if (x is None) != (y is None) and not (y is None and not x.any() or x is None and
                                                   not bridge.look(y).any()):
                raise Different(f'gradient {order}: of v{i} is {"there" if y else "not there"}')
            if x is not None and y is not None:
                check_values(bridge.look(y), x.detach().clone(), f'gradient {order} of v{i}')
        # constants have no history in libtensor
        pairs = [(x, y) for x, y in zip(ga, gb) if x is not None and y is not None and x.requires_grad and
                 lib.so.tensor_requires_grad(y.ptr)]
        a, b = [p[0] for p in pairs], [p[1] for p in pairs]


def replay(lib, statements):
    """Runs the statements on both; raises Different. Returns those that both accepted."""
    ours, theirs, done = Ours(lib), Theirs(), []
    for s in statements:
        done += step(ours, theirs, s)
    check_gradients(lib, ours, theirs)
    return done


def reads_what_it_changes(theirs, s):
    """Whether an in-place statement reads the memory that it changes with another geometry: PyTorch's result depends
    on its order of access."""
    ts = [substitute(v, theirs.variables) for v in s[1].values() if isinstance(v, tuple)]
    return s[0].split('.')[0].endswith('_') and any(
        t.untyped_storage().data_ptr() == ts[0].untyped_storage().data_ptr() and
        (t.shape, t.stride(), t.storage_offset()) != (ts[0].shape, ts[0].stride(), ts[0].storage_offset())
        for t in ts[1:])


def no_history(theirs, s):
    """PyTorch guards a view made under no_grad also if its base has no history; libtensor adds history to the base."""
    base = substitute(s[1]['self'], theirs.variables)._base
    return base is not None and not leads_to_a_leaf(base)


def step(ours, theirs, s):
    """[s] if both accept it, [] if both refuse it."""
    if s[0] != 'leaf' and s[0] != 'requires_grad' and s[0] not in ours.lib.ops:
        raise Different(f'missing: {s[0]}')
    if reads_what_it_changes(theirs, s):
        return []
    made, refused = attempt(theirs, s)
    mine, failed = attempt(ours, s)
    if refused and not failed and any(reason in refused for reason in MORE) or \
            failed and not refused and any(reason in failed for reason in LESS):
        raise Stopped
    if refused and not failed and 'created in no_grad mode' in refused and no_history(theirs, s):
        raise Stopped
    if bool(refused) != bool(failed):
        raise Different(f'{s[0]}: ours {failed or "passes"}; PyTorch {refused or "passes"}')
    if refused:
        return []
    if mine and not made:  # PyTorch returned an argument itself, libtensor a view of all of it
        ours.variables.pop()
        return []
    check_state(ours, theirs)
    return [s]


def generate(lib, r):
    """Generates and runs a random program. Returns its statements and the difference or None."""
    ours, theirs, done = Ours(lib), Theirs(), []
    try:
        for _ in range(r.randrange(5, 31)):
            done.append(statement(r, [t.detach() for t in theirs.variables]))
            if not step(ours, theirs, done[-1]):
                done.pop()
            if any(t.numel() > 400 for t in theirs.variables[-1:]):
                break
        check_gradients(lib, ours, theirs)
    except Different as e:
        return done, str(e)
    except Stopped:
        pass
    return done, None


# ---- the shortest program ---------------------------------------------------------------------------------

def difference(lib, statements):
    try:
        replay(lib, statements)
    except Different as e:
        return str(e)
    except (Stopped, IndexError, RuntimeError):
        pass
    return None


def shrink(lib, statements, why):
    kind = why.split(':')[0]
    k = len(statements) - 1
    while k >= 0:
        shorter = without(statements, k)
        found = difference(lib, shorter)
        if found and found.split(':')[0] == kind:
            statements, why = shorter, found
            k = min(k, len(statements))
        k -= 1
    return statements, why


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument('--lib', default='build/libtensor.so')
    p.add_argument('--programs', type=int, default=20000)
    p.add_argument('--seed', type=int, default=1)
    p.add_argument('--first', type=int, default=0)
    p.add_argument('--most', type=int, default=20, help='differences to print')
    p.add_argument('--json', help='a file for the figures')
    args = p.parse_args()
    lib = boxed.Library(args.lib)
    kinds, total, statements = {}, 0, 0
    for n in range(args.first, args.first + args.programs):
        done, why = generate(lib, random.Random(f'{args.seed} {n}'))
        statements += len(done)
        total += why is not None
        if why is None:
            continue
        done, why = shrink(lib, done, why)
        kind = why.split(':')[0]
        kinds[kind] = kinds.get(kind, 0) + 1
        if kinds[kind] <= 3 and sum(min(v, 3) for v in kinds.values()) <= args.most:
            print(f'# program {n} of seed {args.seed}: {why[:300]}\n{text(done)}', flush=True)
    print(f'# {args.programs} programs of seed {args.seed}, {statements} statements: {total} differ '
          f'({100 * total / args.programs:.2f} %): {kinds}')
    if args.json:
        with open(args.json, 'w') as f:
            json.dump(dict(programs=args.programs, seed=args.seed, statements=statements, differ=total,
                           kinds=kinds), f)
    return 1 if total else 0


if __name__ == '__main__':
    sys.exit(main())
