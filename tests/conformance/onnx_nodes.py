# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Runs ONNX's node tests (Debian: libonnx-testdata) with libtensor; needs only the standard library.

A case is applicable if each of its nodes has an adapter below, the library has the operators that
the adapter calls, and the dtypes of its tensors. Results are compared with the tolerances of ONNX's
runner: relative 1e-3, absolute 1e-7. Cases that lack only an operator of the library are skipped;
sequences, strings, loops and similar cases are not applicable. Writes BUILD/results/onnx.tally.
"""
import argparse
import glob
import os
import struct
import sys

import boxed
import golden
import onnx_proto
from onnx_proto import Foreign
from onnx_ops import ADAPTERS, Missing, NotHere, Ops
import onnx_layers  # noqa: F401  registers its adapters
import onnx_shapes  # noqa: F401

DATA = '/usr/share/libonnx-testdata/data'
RTOL, ATOL = 1e-3, 1e-7


def load(lib, data):
    dtype, sizes, raw = onnx_proto.tensor(data)
    return lib.storage(dtype, raw, sizes=sizes)


def differs(got, want):
    """got: a tensor of libtensor; want: TensorProto bytes."""
    dtype, sizes, raw = onnx_proto.tensor(want)
    if got.dtype != dtype or got.sizes != sizes:
        return f'{dtype}{sizes} expected, got {got.dtype}{got.sizes}'
    if got.tobytes() == raw:
        return None
    a, b = golden.numbers(got.tobytes(), dtype), golden.numbers(raw, dtype)
    for i, (x, y) in enumerate(zip(a, b)):
        if not golden.near(x, y, RTOL, ATOL):
            return f'element {i}: {y} expected, got {x}'
    return None


def run_case(lib, folder):
    """Raises Foreign or Missing if not applicable; returns the text of a difference, else None."""
    with open(os.path.join(folder, 'model.onnx'), 'rb') as f:
        model = onnx_proto.Model(f.read())
    for n in model.nodes:
        if n.op not in ADAPTERS or n.domain not in ('', 'ai.onnx'):
            raise Missing(f'no adapter for {n.op}')
    ops, sets = Ops(lib, model.opset), sorted(glob.glob(os.path.join(folder, 'test_data_set_*')))
    for data in sets:
        env = {name: load(lib, t) for name, t in model.initializers.items()}
        given = [n for n in model.inputs if n not in env]
        for i, name in enumerate(given):
            path = os.path.join(data, f'input_{i}.pb')
            with open(path, 'rb') as f:
                env[name] = load(lib, f.read())
        for n in model.nodes:
            x = [env[i] if i else None for i in n.inputs]
            ops.wanted = len(n.outputs)
            res = ADAPTERS[n.op](ops, x, n.attributes())
            res = res if isinstance(res, (list, tuple)) else [res]
            if len(res) < len(n.outputs):
                raise Missing(f'{n.op} with {len(n.outputs)} results')
            env.update(zip(n.outputs, res))
        for i, name in enumerate(model.outputs):
            path = os.path.join(data, f'output_{i}.pb')
            with open(path, 'rb') as f:
                fault = differs(env[name], f.read())
            if fault:
                return f'{name}: {fault}'
    if not sets:
        raise Foreign('no data')
    return None


def main():
    p = argparse.ArgumentParser(description="runs ONNX's node tests with libtensor")
    p.add_argument('cases', nargs='*', help='names without test_ (all)')
    p.add_argument('--lib', default='build/libtensor.so')
    p.add_argument('--build', default='build')
    p.add_argument('-v', '--verbose', action='store_true', help='prints why other cases are not applicable')
    args = p.parse_args()
    lib = boxed.Library(args.lib)
    passed, skipped, faults, left = 0, 0, [], {}
    folders = [f for d in ('node', 'simple', 'pytorch-operator', 'pytorch-converted')
               for f in sorted(glob.glob(f'{DATA}/{d}/test_*'))]
    if not folders:
        print('onnx: no test data; Debian has it as libonnx-testdata')
    for folder in folders:
        name = os.path.basename(folder)[len('test_'):]
        if args.cases and name not in args.cases:
            continue
        try:
            fault = run_case(lib, folder)
        except (Foreign, Missing, boxed.Unsupported) as e:
            left.setdefault(str(e), []).append(name)
            skipped += isinstance(e, NotHere)
            continue
        except boxed.Failed as e:
            fault = e.text
        except (KeyError, IndexError, FileNotFoundError, struct.error) as e:
            left.setdefault(f'cannot be read: {e!r}', []).append(name)
            continue
        if fault:
            faults.append(name)
            print(f'not ok - {name}: {fault}')
        else:
            passed += 1
    if args.verbose:
        for why, names in sorted(left.items(), key=lambda i: -len(i[1])):
            print(f'{len(names):5d}  {why}: {" ".join(names[:4])}')
    foreign = sum(map(len, left.values())) - skipped
    os.makedirs(f'{args.build}/results', exist_ok=True)
    with open(f'{args.build}/results/onnx.tally', 'w') as f:
        f.write(f'{passed} {len(faults)} {skipped}\n')
    print(f'  {passed} of {passed + len(faults)} applicable cases; {skipped} need an operator that is missing, '
          f'{foreign} use tensors or operators without a counterpart')
    print(f'onnx: {passed} passed, {len(faults)} failed, {skipped} skipped')
    return bool(faults)


if __name__ == '__main__':
    sys.exit(main())
