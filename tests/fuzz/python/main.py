# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Calls every function, method, constructor and property of devtensor._C with hostile arguments.

    PYTHONPATH=build/python python3 tests/fuzz/python/main.py [--rounds N] [--seed N | random] [NAME...]

A call returns or raises an exception. It fails the run if it crashes, takes a minute, raises SystemError, changes the
reference count of an argument, or if tensors are alive when all its objects are gone. Each group of targets runs in a
process of its own, which writes down every call before it is made, so that the parent can name one that crashed.
"""
import argparse
import ctypes
import faulthandler
import gc
import inspect
import os
import random
import resource
import subprocess
import sys
import tempfile

from devtensor import _C
import values

GROUP = 40  # targets of a process
FOUND = 3  # exit status of a process with findings
MEMORY = 6 << 30  # address space of a process: a size that fits nowhere fails quickly
NAMES = ['input', 'self', 'other', 'dim', 'axis', 'dims', 'size', 'out', 'dtype', 'device', 'layout', 'generator',
         'requires_grad', 'keepdim', 'keepdims', 'alpha', 'value', 'index', 'memory_format', 'no_such_name', '\ud800',
         '']
# Reads any address by design.
LEFT_OUT = {'_from_cdata'}


class Counts(ctypes.Structure):
    _fields_ = [('tensors', ctypes.c_uint64), ('storages', ctypes.c_uint64)]


def library():
    return ctypes.CDLL(_C.__file__)


def live_tensors():
    counts = Counts()
    library().tensor_live_counts(ctypes.byref(counts))
    return counts.tensors


# ---- targets: name -> a function that returns what is called, for given tensors ----

def targets():
    found = {}
    for name in sorted(set(dir(_C)) - LEFT_OUT):
        if callable(getattr(_C, name)) and not name.startswith('__'):
            found[name] = getattr(_C, name)
    for cls in (_C.Tensor, _C.dtype, _C.layout, _C.memory_format, _C.device, _C.Generator):
        for name in sorted(set(dir(cls)) - set(dir(type)) | {'__eq__', '__lt__', '__hash__'}):
            if name in ('__class__', '__new__', '__init__', '__init_subclass__', '__subclasshook__',
                        '__getattribute__'):
                continue
            attribute = getattr(cls, name)
            found[f'{cls.__name__}.{name}'] = attribute if callable(attribute) else attribute_changes(name)
    return found


def attribute_changes(name):
    """Reads, sets and deletes an attribute."""
    def change(owner, *args, **kwargs):
        value = getattr(owner, name)
        if len(args) == 1:
            delattr(owner, name)
        elif args:
            setattr(owner, name, args[0])
        return value
    return change


# ---- calls ----

class Pool:
    """Arguments: made anew for each round, because calls change them."""

    def __init__(self):
        self.tensors = values.tensors()
        self.kinds = [values.numbers(), values.sequences(), values.objects(), values.words(), values.constants(),
                      [None]]

    def one(self, rng):
        if rng.random() < 0.5:
            return rng.choice(self.tensors)
        return rng.choice(rng.choice(self.kinds))


def owner_of(name, pool, rng):
    if name.startswith('Tensor.'):
        return [rng.choice(pool.tensors)]
    if '.' in name and rng.random() < 0.95:
        cls = getattr(_C, name.split('.')[0])
        return [rng.choice([c for c in pool.kinds[4] if isinstance(c, cls)])]
    return []


def parameters_of(f):
    try:
        return [p for p in inspect.signature(f).parameters if p not in ('self', 'args', 'kwargs')]
    except (TypeError, ValueError):
        return []


def arguments(name, f, pool, rng):
    args = owner_of(name, pool, rng) + [pool.one(rng) for _ in range(rng.choice([0, 1, 1, 1, 2, 2, 2, 3, 3, 4, 6]))]
    names = NAMES + 4 * parameters_of(f)
    kwargs = {rng.choice(names): pool.one(rng) for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 3]))}
    return args, kwargs


def describe(o):
    if isinstance(o, _C.Tensor):
        return f'tensor({o.dtype}, {o.shape}, {o.layout})'
    try:
        return type(o).__name__ if type(o).__module__ == 'values' else ascii(o)[:60]
    except Exception as e:  # a nested list is too deep, an element raises
        return f'{type(o).__name__} without repr: {type(e).__name__}'


def counts_of(objects):
    return [sys.getrefcount(o) for o in objects]


def call(f, args, kwargs):
    """The name of what is wrong, or None."""
    try:
        f(*args, **kwargs)
    except SystemError as e:
        return f'SystemError: {e}'
    except Exception:  # any other exception is an answer
        return None
    return None


def check_call(f, args, kwargs):
    objects = [*args, *kwargs.values()]
    # Objects that every module refers to are counted elsewhere, too; those of a pool are referred to by it alone.
    counted = [o for o in objects if isinstance(o, _C.Tensor)]
    before = counts_of(counted)
    wrong = call(f, args, kwargs)
    if wrong:
        return wrong
    if counts_of(counted) != before:
        gc.collect()
        after = counts_of(counted)
        if after != before:
            return f'references of the tensors: {before} before, {after} after'
    return None


class Journal:
    """The call that is being made, for the parent."""

    def __init__(self, path):
        self.fd = os.open(path, os.O_WRONLY | os.O_CREAT)

    def write(self, text):
        os.pwrite(self.fd, text.encode('ascii', 'replace')[:4000].ljust(4000), 0)


def fuzz_target(name, f, rounds, seed, journal):
    wrong = []
    rng = random.Random(f'{seed} {name}')
    pool = Pool()
    for n in range(rounds):
        if n % 20 == 19:
            pool = Pool()
        args, kwargs = arguments(name, f, pool, rng)
        named = (f'{k!a}={describe(v)}' for k, v in kwargs.items())
        journal.write(f'{name}({", ".join(map(describe, args))} | {", ".join(named)})')
        faulthandler.dump_traceback_later(120, exit=True)
        said = check_call(f, args, kwargs)
        faulthandler.cancel_dump_traceback_later()
        if said:
            wrong.append(f'{name}({", ".join(map(describe, args))} | '
                         f'{", ".join(f"{k!a}={describe(v)}" for k, v in kwargs.items())}): {said}')
        del args, kwargs
    return wrong


def child(names, rounds, seed, path):
    faulthandler.enable()
    if 'libasan' not in os.environ.get('LD_PRELOAD', ''):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(tempfile.mkdtemp())
    found, journal, failed = targets(), Journal(path), 0
    for name in names:
        fuzz_target(name, found[name], 1, seed, journal)  # caches are filled
        gc.collect()
        before = live_tensors()
        wrong = fuzz_target(name, found[name], rounds, seed, journal)
        gc.collect()
        if live_tensors() > before:
            wrong.append(f'{name}: {live_tensors() - before} tensors are alive after the calls')
        for line in wrong[:5]:
            print('WRONG', line, flush=True)
        failed |= bool(wrong)
    sys.exit(FOUND if failed else 0)


# ---- the parent ----

def run_group(names, rounds, seed):
    """The lines that describe what is wrong. After a crash the rest of the group is run by another process."""
    wrong = []
    while names:
        with tempfile.NamedTemporaryFile() as journal:
            done = subprocess.run([sys.executable, '-B', os.path.abspath(__file__), '--child', journal.name, '--rounds',
                                   str(rounds), '--seed', str(seed), *names], capture_output=True, text=True,
                                  errors='replace', check=False)
            wrong += [line for line in done.stdout.splitlines() if line.startswith('WRONG')]
            if done.returncode in (0, FOUND):
                return wrong
            if done.returncode == 1 and 'Timeout (' not in done.stderr and 'Sanitizer' not in done.stderr:
                raise RuntimeError(f'the fuzzer itself failed\n{done.stderr}')
            last = journal.read().decode(errors='replace').strip()
            wrong.append(f'CRASHED (exit {done.returncode}) {last}\n{done.stderr[-3000:]}')
            at = last.split('(')[0]
            names = names[names.index(at) + 1:] if at in names else []
    return wrong


def run(names, rounds, seed, report=lambda text: None):
    wrong = []
    for i in range(0, len(names), GROUP):
        report(f'{i} of {len(names)} targets, seed {seed}')
        wrong += run_group(names[i:i + GROUP], rounds, seed)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--rounds', type=int, default=20)
    parser.add_argument('--seed', default='1')
    parser.add_argument('--child', help=argparse.SUPPRESS)
    parser.add_argument('names', nargs='*')
    options = parser.parse_args()
    if options.child:
        child(options.names, options.rounds, options.seed, options.child)
    seed = random.randrange(2**32) if options.seed == 'random' else options.seed
    names = options.names or list(targets())
    wrong = run(names, options.rounds, seed, print)
    for line in wrong:
        print(line)
    print(f'{len(names)} targets, {options.rounds} calls of each, seed {seed}: {len(wrong)} findings')
    sys.exit(bool(wrong))


if __name__ == '__main__':
    main()
