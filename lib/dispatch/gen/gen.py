#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""usage: gen.py OPS.yaml DERIVATIVES.yaml OUTDIR

Writes everything that follows from the declarations. Files whose text did not change keep their
time stamps, so that an edit to one entry does not rebuild what it does not touch.
"""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
try:
    import yaml  # noqa: F401
except ImportError:
    sys.exit(f'gen.py: {sys.executable} has no PyYAML (Debian: python3-yaml)')

import api
import schema
import tables


def write(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    try:
        with open(path) as f:
            if f.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path + '.new', 'w') as f:
        f.write(text)
    os.rename(path + '.new', path)


def main():
    ops_yaml, derivatives_yaml, out = sys.argv[1:4]
    ops = schema.load(ops_yaml)
    write(f'{out}/include/tensor/ops.h', api.public_header(ops))
    write(f'{out}/ops_call.h', api.call_header(ops))
    write(f'{out}/ops_api.c', api.public_source(ops))
    write(f'{out}/ops_fronts.h', tables.fronts_header(ops))
    write(f'{out}/ops_tables.c', tables.source(ops))
    if os.path.exists(derivatives_yaml):
        sys.path.insert(0, os.path.join(os.path.dirname(derivatives_yaml), 'gen'))
        import derivatives
        for name, text in derivatives.generate(ops, derivatives_yaml):
            write(f'{out}/{name}', text)
    with open(f'{out}/stamp', 'w'):
        pass


if __name__ == '__main__':
    main()
