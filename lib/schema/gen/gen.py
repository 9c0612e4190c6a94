#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""usage: gen.py OPS/ DERIVATIVES/ OUTDIR [EXAMPLES/]

Writes the generated sources, one C file for each family and kind. Files whose text did not change keep their time stamps, so
an edit of one entry compiles only the files that depend on it.
"""
import glob
import os
import sys

try:
    import yaml  # noqa: F401
except ImportError:
    sys.exit(f'gen.py: {sys.executable} has no PyYAML (Debian: python3-yaml)')

import api
import batch
import cpp
import derivatives
import examples
import python
import python_stubs
import schema
import sources
import tables


WRITTEN = set()
# Files of families: those of a family that does not exist any more are deleted.
OF_FAMILIES = ('family/*.h', 'ops_api_*.c', 'ops_tables_*.c', 'autograd_*.c')


def write(path, text):
    WRITTEN.add(path)
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
    if len(sys.argv) < 4:
        sys.exit(__doc__)
    ops_dir, derivatives_dir, out = sys.argv[1:4]
    examples_dir = sys.argv[4] if len(sys.argv) > 4 else examples.folder()
    ops = schema.load(glob.glob(f'{ops_dir}/*/*.yaml'))
    missing = sources.check(ops)
    if missing:
        sys.exit('\n'.join(missing))
    write(f'{out}/include/tensor/ops.h', api.public_header(ops))
    write(f'{out}/include/tensor/ops.hpp', cpp.header(ops))
    write(f'{out}/examples.c', examples.source(ops, examples_dir))
    write(f'{out}/ops_registry.c', tables.registry(ops))
    write(f'{out}/python/operators.c', python.source(ops))
    write(f'{out}/python/_C.pyi', python_stubs.stubs(ops))
    write(f'{out}/batch_rules.h', batch.header(ops))
    write(f'{out}/batch_rules.c', batch.source(ops))
    for family in sorted({op.family for op in ops}):
        own = [op for op in ops if op.family == family]
        write(f'{out}/family/{family}.h', api.family_header(family, own, tables.prototypes(own)))
        write(f'{out}/ops_api_{family}.c', api.public_source(family, own))
        write(f'{out}/ops_tables_{family}.c', tables.source(family, own))
    for name, text in derivatives.generate(ops, glob.glob(f'{derivatives_dir}/*/*.yaml')):
        write(f'{out}/{name}', text)
    for pattern in OF_FAMILIES:
        for path in set(glob.glob(f'{out}/{pattern}')) - WRITTEN:
            os.remove(path)
    with open(f'{out}/stamp', 'w'):
        pass


if __name__ == '__main__':
    try:
        main()
    except OSError as e:
        sys.exit(f'gen.py: {e.filename}: {e.strerror}')
