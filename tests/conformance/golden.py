# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Golden vectors: calls with PyTorch's results, for machines that have no PyTorch.

golden/vectors.xz holds a line of JSON for each call, sorted by operator:

    {"op": "add.Tensor", "d": "f32", "args": {...}, "res": [...], "tol": [rtol, atol]}

args are by name; missing ones have their defaults. A tensor is {"t": dtype, "n": sizes,
"s": strides, "o": offset, "x": hex of its storage}, strides and offset only if it is not
contiguous; {"c": [re, im]} is a complex number; other values are themselves. res are the results in
order (for an in-place operator its self). "d" is the dtype of the sample. Arguments come from the
samples in PyTorch's operator table, results from PyTorch; both were computed for this project and
have its licence.

    golden.py            replays them (standard library only), writes BUILD/results/golden.tally; --device cuda: on a
                         device
    run --golden FILE    writes them again; with names of operators, only theirs
"""
import argparse
import json
import lzma
import math
import os
import struct
import sys

import boxed

HERE = os.path.dirname(os.path.abspath(__file__))
FILE = os.path.join(HERE, 'golden', 'vectors.xz')
LIMIT = 2500  # bytes of a vector's tensors

FORMAT = dict(bool='?', u8='B', i8='b', i16='h', i32='i', i64='q', f16='e', f32='f', f64='d',
              c64='f', c128='d')
# Relative and absolute, those of torch.testing.assert_close.
TOLERANCE = dict(f16=(1e-3, 1e-5), bf16=(1.6e-2, 1e-5), f32=(1.3e-6, 1e-5), f64=(1e-7, 1e-7),
                 c64=(1.3e-6, 1e-5), c128=(1e-7, 1e-7))


# ---- writing -----------------------------------------------------------------------------------

class TooLarge(Exception):
    pass


class Collector:
    """Collects a few small calls for each operator; the sink of replay.Replay."""

    def __init__(self, dtype, names, per_op=4):
        self.dtype, self.names, self.per_op = dtype, names, per_op
        self.vectors, self.seen = {}, set()

    def encode(self, x, call):
        import torch
        if isinstance(x, torch.Tensor):
            s = x.untyped_storage()
            self.room -= s.nbytes() + 16
            if self.room < 0:
                raise TooLarge
            import bridge
            out = {'t': bridge.OURS[x.dtype], 'n': list(x.shape), 'x': bytes(s).hex()}
            if not x.is_contiguous() or x.storage_offset() or \
                    s.nbytes() != x.numel() * x.element_size():
                out.update(s=list(x.stride()), o=x.storage_offset())
            return out
        if isinstance(x, (list, tuple)):
            return [self.encode(i, call) for i in x]
        if isinstance(x, complex):
            return {'c': [x.real, x.imag]}
        x = call.value(x)
        if x is None or isinstance(x, (bool, int, float, str)):
            return x
        raise TooLarge

    def before(self, op, call, fitted, text):
        """The arguments before the call, or None if the call is not collected."""
        key = text.split(', device')[0]
        if op.variant == 'out' or key in self.seen or \
                len(self.vectors.get(op.name, ())) >= self.per_op:
            return None
        self.seen.add(key)
        self.room = LIMIT
        try:
            return {k: self.encode(v, call) for k, v in fitted.items()}
        except TooLarge:
            return None

    def after(self, op, call, args, refs, tolerance):
        try:
            res = [self.encode(r if not hasattr(r, 'resolve_conj') else
                               r.detach().resolve_conj().contiguous().clone(), call) for r in refs]
        except TooLarge:
            return
        v = dict(op=op.name, d=self.dtype, args=args, res=res)
        if tolerance:
            v['tol'] = tolerance[:2]
        v['own'] = op.base.rstrip('_') in self.names
        self.vectors.setdefault(op.name, []).append(v)

    def all(self):
        return [v for vs in self.vectors.values() for v in vs]


def select(vectors, most):
    """Per operator and dtype: calls of its own entry first, then those that add another form."""
    groups = {}
    for v in vectors:
        groups.setdefault((v['op'], v['d']), []).append(v)
    out = []
    for (op, d), vs in sorted(groups.items()):
        vs.sort(key=lambda v: not v.get('own'))
        chosen, forms = [], set()
        for v in vs:
            tensors = [t for a in v['args'].values() for t in (a if isinstance(a, list) else [a])
                       if isinstance(t, dict) and 't' in t]
            form = (tuple(sorted(v['args'])), 0 in [len(t['n']) for t in tensors],
                    any(0 in t['n'] for t in tensors), any('s' in t for t in tensors))
            if form not in forms and len(chosen) < most.get(d, 2):
                forms.add(form)
                chosen.append(v)
        out += chosen
    return out


def write(path, vectors, update=False, most=dict(f32=4, f64=3)):
    """update: keep the vectors of operators that are not among the new ones."""
    chosen = select(vectors, most)
    for v in chosen:
        v.pop('own', None)
    if update and os.path.exists(path):
        new = {v['op'] for v in chosen}
        with lzma.open(path, 'rt') as f:
            chosen += [v for v in map(json.loads, f) if v['op'] not in new]
        chosen.sort(key=lambda v: (v['op'], v['d']))
    os.makedirs(os.path.dirname(path) or '.', exist_ok=True)
    text = ''.join(json.dumps(v, separators=(',', ':')) + '\n' for v in chosen)
    with open(path, 'wb') as f:
        f.write(lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME))
    print(f'{path}: {len(chosen)} vectors of {len({v["op"] for v in chosen})} operators, '
          f'{os.path.getsize(path)} bytes')


# ---- replaying ---------------------------------------------------------------------------------

def numbers(data, dtype):
    if dtype == 'bf16':
        return [struct.unpack('<f', b'\0\0' + data[i:i + 2])[0] for i in range(0, len(data), 2)]
    f = FORMAT[dtype]
    return list(struct.unpack(f'<{len(data) // struct.calcsize(f)}{f}', data))


def near(a, b, rtol, atol):
    if a == b or a != a and b != b:
        return True
    return math.isfinite(a) and math.isfinite(b) and abs(a - b) <= atol + rtol * abs(b)


def contiguous(sizes):
    out, n = [], 1
    for s in reversed(sizes):
        out.append(n)
        n *= max(s, 1)
    return out[::-1]


def decode(lib, x):
    if isinstance(x, list):
        return [decode(lib, i) for i in x]
    if not isinstance(x, dict):
        return x
    if 'c' in x:
        return complex(*x['c'])
    base = lib.storage(x['t'], bytes.fromhex(x['x']), sizes=None if 's' in x else x['n'])
    return lib.view(base, x['n'], x['s'], x['o']) if 's' in x else base


def flat(x):
    return [j for i in x for j in flat(i)] if isinstance(x, list) else [x]


def differs(got, want, tol):
    """The text of the difference, or None."""
    if not isinstance(want, dict):
        return None if got == want or got != got and want != want else f'{want} expected, got {got}'
    if 'c' in want:
        return None if got == complex(*want['c']) else f'{want["c"]} expected, got {got}'
    if not isinstance(got, boxed.Tensor):
        return f'a tensor expected, got {got}'
    if got.device != (got.lib.device.type, got.lib.device.index):
        return f'a tensor of device type {got.lib.device.type} expected, got type {got.device[0]}'
    if got.dtype != want['t'] or got.sizes != want['n']:
        return f'{want["t"]}{want["n"]} expected, got {got.dtype}{got.sizes}'
    data, expected = got.tobytes(), bytes.fromhex(want['x'])
    if data == expected:
        return None
    if want['t'] not in TOLERANCE:
        return f'{numbers(expected, want["t"])} expected, got {numbers(data, want["t"])}'
    rtol, atol = (max(p) for p in zip(TOLERANCE[want['t']], tol or (0, 0)))
    a, b = numbers(data, want['t']), numbers(expected, want['t'])
    if want['t'][0] == 'c':
        a, b = ([complex(x, y) for x, y in zip(v[::2], v[1::2])] for v in (a, b))
        bad = [i for i in range(len(a)) if not (
            near(a[i].real, b[i].real, 0, atol + rtol * abs(b[i])) and
            near(a[i].imag, b[i].imag, 0, atol + rtol * abs(b[i])))]
    else:
        bad = [i for i in range(len(a)) if not near(a[i], b[i], rtol, atol)]
    return f'element {bad[0]}: {b[bad[0]]} expected, got {a[bad[0]]}' if bad else None


def replay_one(lib, v, op):
    """Replays the call, its in-place form and its out form; yields (operator, text of the difference or None)."""
    def attempt(o, args, results):
        try:
            got = flat(lib.call(o, args))
        except boxed.Failed as e:
            return e.text
        if len(got) != len(results):
            return f'{len(results)} results expected, got {len(got)}'
        return next((s for g, w in zip(got, results) for s in [differs(g, w, v.get('tol'))] if s),
                    None)
    res, args = flat(v['res']), v['args']
    yield op, attempt(op, {k: decode(lib, x) for k, x in args.items()}, res)
    if op.variant != 'function' or 'view' in op.tags or \
            not all(isinstance(r, dict) and 't' in r for r in res):
        return
    first = args.get(op.args[0].name) if op.args else None
    inplace = lib.ops.get(f'{op.base}_' + (f'.{op.overload}' if op.overload else ''))
    if inplace and [a.type for a in inplace.args] != [a.type for a in op.args]:
        inplace = None
    # Do not write to an argument whose elements share memory.
    if inplace and isinstance(first, dict) and len(res) == 1 and first['t'] == res[0]['t'] and \
            first['n'] == res[0]['n'] and 's' not in first:
        yield inplace, attempt(inplace, {k: decode(lib, x) for k, x in args.items()}, res)
    for name in ('out', f'{op.overload}_out'):
        out = lib.ops.get(f'{op.base}.{name}')
        if out and [(a.name, a.type) for a in out.args if not a.mutated] == \
                [(a.name, a.type) for a in op.args]:
            given = {k: decode(lib, x) for k, x in args.items()}
            for a, r in zip((a for a in out.args if a.mutated), res):
                blank = dict(r, x='00' * (len(r['x']) // 2))
                if r['n']:  # with gaps between the rows
                    rows = contiguous([n + (i == len(r['n']) - 1) for i, n in enumerate(r['n'])])
                    size = (1 + sum((n - 1) * s for n, s in zip(r['n'], rows))) if \
                        0 not in r['n'] else 0
                    blank = dict(t=r['t'], n=r['n'], s=rows, o=0,
                                 x='00' * (size * boxed.ITEMSIZE[r['t']]))
                given[a.name] = decode(lib, blank)
            yield out, attempt(out, given, res)
            break


def main():
    p = argparse.ArgumentParser(description='replays the golden vectors')
    p.add_argument('operators', nargs='*')
    p.add_argument('--lib', default='build/libtensor.so')
    p.add_argument('--file', default=FILE)
    p.add_argument('--build', default='build')
    p.add_argument('--device', default='cpu', choices=('cpu', 'cuda'))
    p.add_argument('--tally', default='golden', help='BUILD/results/TALLY.tally')
    args = p.parse_args()
    lib = boxed.Library(args.lib, args.device)
    lib.open_device()
    counts, vectors, missing = {}, 0, set()
    with lzma.open(args.file, 'rt') as f:
        for line in f:
            v = json.loads(line)
            op = lib.ops.get(v['op'])
            if args.operators and v['op'] not in args.operators:
                continue
            if not op:
                missing.add(v['op'])
                continue
            vectors += 1
            for o, fault in replay_one(lib, v, op):
                c = counts.setdefault((o.name, v['d']), [0, 0])
                c[fault is not None] += 1
                if fault and c[1] == 1:
                    print(f'not ok - {o.name} {v["d"]}: {fault}')
    passed = sum(1 for c in counts.values() if not c[1])
    failed = sum(1 for c in counts.values() if c[1])
    for name in sorted(missing):
        print(f'not ok - {name}: the vectors have it, the library does not')
    failed += len(missing)
    os.makedirs(f'{args.build}/results', exist_ok=True)
    with open(f'{args.build}/results/{args.tally}.tally', 'w') as f:
        f.write(f'{passed} {failed} 0\n')
    print(f'  {vectors} vectors, {sum(map(sum, counts.values()))} calls of '
          f'{len({o for o, _ in counts})} operators; a test is an operator with a dtype')
    if not lib.is_host:
        print(f'  the CPU computed {lib.fallbacks()} calls that have no kernel')
    print(f'{args.tally}: {passed} passed, {failed} failed, 0 skipped')
    return failed > 0 or not passed


if __name__ == '__main__':
    sys.exit(main())
