# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Compares the entries with the library's sources: each function and each kernel that an entry names exists, and its name is
written out where it is defined, so that grep finds it."""
import glob
import os
import re

import batch
import tables

LIB = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '../..'))
NAME = re.compile(r'(\w+)\(')


def text(*folders):
    """The C sources below folders of lib/, as one string."""
    paths = [path for folder in folders for path in glob.glob(f'{LIB}/{folder}/**/*.[ch]', recursive=True)]
    out = []
    for path in sorted(paths):
        with open(path) as f:
            out.append(f.read())
    return ''.join(out)


def formula_words():
    """The names that formulas may call beside the operators: functions and macros of the library, its headers and C."""
    return set(re.findall(r'\w+', text('autograd', 'base', 'core', '../include/tensor')))


def check(ops):
    """The functions that are missing, one text a line."""
    functions = set(re.findall(r'\w+', text('ops', 'autograd', 'sharing', 'core', 'io')))
    # K() compares with the type of pointwise kernels, KERNEL() with that which lib/kernels/abi/ states.
    plain, typed = (set(re.findall(rf'\b{macro}\((\w+)\)', text('kernels'))) for macro in ('K', 'KERNEL'))
    kernels = plain | typed
    pointwise = {name for op in ops if 'pointwise' in op.tags for name in [op.kernel] + op.entry.get('also', [])}
    missing = []
    rules = set(re.findall(r'\bbatch_rule_(\w+)\(', text('batch')))
    missing += [f'{op.entry.at("batch")}: {op.name}: no file of lib/batch defines batch_rule_{batch.rule(op)[0]}()'
                for op in ops if batch.rule(op)[0] not in rules]
    for op in ops:
        macro = 'K' if 'pointwise' in op.tags else 'KERNEL'
        names = {NAME.search(prototype).group(1) for prototype in tables.prototypes([op])}
        missing += [f'{op.entry.place}: {op.name}: no file of lib/ defines {name}()' for name in sorted(names - functions)]
        missing += [f'{op.entry.at("also")}: {op.name}: no CPU_KERNELS({macro}({name})) in lib/kernels/'
                    for name in op.entry.get('also', []) if op.variant == 'function' and name not in kernels]
        missing += [f'{op.entry.place}: {op.name}: K({name}) is for pointwise operators; KERNEL({name}) has the type that '
                    'lib/kernels/abi/ states' for name in [op.kernel] * (op.kind == 'op') + op.entry.get('also', [])
                    if op.variant == 'function' and name in plain - pointwise]
        if op.kind == 'op' and op.variant == 'function' and op.kernel not in kernels:
            missing.append(f'{op.entry.place}: {op.name}: no CPU_KERNELS({macro}({op.kernel})) in lib/kernels/; '
                           'a kernel with another name is given in the field kernel')
    return missing
