# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Runs PyTorch's samples with libtensor's operators: a table of operator x dtype.

Every entry of PyTorch's operator tables (op_db, and those of lists) runs in a process of its own: its sample_inputs,
the same made non-contiguous, and its error_inputs, for every dtype that both libraries have. replay.py
runs a call. Results go to build/conformance/{report.json,report.txt}, and line by
line to results.jsonl there: --continue resumes an interrupted run, and concurrent runs with --shard
write to the same file.
"""
import argparse
import gc
import glob
import hashlib
import itertools
import json
import mmap
import os
import signal
import sys
import tempfile
import time
import traceback

os.environ.setdefault('OMP_NUM_THREADS', '1')
import warnings

warnings.filterwarnings('ignore')
import torch

import boxed
import bridge
import golden
import grads
import replay
import report

torch.set_num_threads(1)
PROGRESS = 4000
CRASHES = 30


def operator_table():
    from torch.testing._internal import common_methods_invocations as table
    return table.op_db + table.foreach_unary_op_db + table.foreach_binary_op_db + \
        table.foreach_pointwise_op_db + table.foreach_reduce_op_db + table.foreach_other_op_db


def names_of(info):
    names = {info.name, info.name.split('.')[-1], info.aten_name}
    return names | {a.name for a in info.aliases}


def tolerance_of(info, dtype):
    """The largest tolerance of the entry for this dtype on the CPU, or None."""
    from torch.testing._internal.common_device_type import toleranceOverride
    from torch.testing._internal.opinfo.core import DecorateInfo
    rtol = atol = 0.0
    for d in info.decorators:
        if not isinstance(d, DecorateInfo) or d.device_type not in (None, 'cpu'):
            continue
        for override in d.decorators:
            if isinstance(override, toleranceOverride) and dtype in override.d:
                tol = override.d[dtype]
                rtol, atol = max(rtol, tol.rtol), max(atol, tol.atol)
    return (rtol, atol, dtype) if rtol or atol else None


def run_sample(mode, fn):
    """Runs below autograd. An exception of PyTorch is a result, too."""
    with torch._C._AutoDispatchBelowAutograd(), mode:
        try:
            fn()
            return None
        except Exception as e:
            return e


def samples_of(info, dtype, limit, every):
    torch.manual_seed(0)
    for i, s in enumerate(info.sample_inputs('cpu', dtype)):
        if limit and i >= limit:
            return
        if i % every:
            continue
        yield s
        try:
            yield s.noncontiguous()
        except Exception:
            pass


def run_dtype(lib, info, name, args, progress):
    dtype = bridge.TORCH[name]
    tally = replay.Tally(name)
    gc.collect()
    used = lib.used()
    mode = replay.Replay(lib, tally, progress, not args.no_variants,
                         set(args.operators) if args.strict else None)
    mode.tolerance = tolerance_of(info, dtype)
    done = 0
    if args.golden:
        mode.sink = golden.Collector(name, names_of(info))
    if dtype in info.supported_dtypes('cpu'):
        for s in samples_of(info, dtype, args.samples, args.every):
            wanted = name in args.grad and info.supports_autograd
            mode.grad_calls = [] if wanted else None
            run_sample(mode, lambda: info.op(s.input, *s.args, **s.kwargs))
            if wanted:
                grads.backward(lib, tally, mode.grad_calls, mode.tolerance, progress)
            done += 1
    mode.grad_calls = None
    if info.error_inputs_func and name == 'f32':
        torch.manual_seed(0)
        for e in itertools.islice(info.error_inputs('cpu'), 0, None, args.every):
            s = e.sample_input
            run_sample(mode, lambda: info.op(s.input, *s.args, **s.kwargs))
            done += 1
    gc.collect()
    if lib.used() > used:
        tally.failed(info.name, 'leak', f'{lib.used() - used} bytes are still in use')
    rows = [dict(operator=op, kind=kind, dtype=name, **n) for (op, kind), n in tally.rows.items()]
    faults = [dict(operator=op, kind=kind, dtype=name, count=n, message=m, entry=info.full_name,
                   why=why)
              for (op, kind, _, why), (n, m) in tally.failures.items()]
    notes = [dict(operator=op, kind=kind, dtype=name, count=n, message=m)
             for (op, kind, _), (n, m) in tally.notes.items()]
    return dict(entry=info.full_name, dtype=name, rows=rows, failures=faults, notes=notes,
                missing=tally.missing, samples=done,
                golden=mode.sink.all() if mode.sink else [])


def child(lib, info, dtypes, args, fd, board, crashed):
    """Writes a line of JSON for each finished dtype."""
    def write(text):
        b = text.encode()[:PROGRESS - 1]
        board[:len(b) + 1] = b + b'\0'
    progress = replay.Progress(write, crashed)
    lib.open_device()
    with os.fdopen(fd, 'w') as out:
        for name in dtypes:
            signal.alarm(args.timeout)
            try:
                res = run_dtype(lib, info, name, args, progress)
            except Exception:
                res = dict(entry=info.full_name, dtype=name, rows=[], notes=[], missing={}, samples=0,
                           failures=[dict(operator='(runner)', kind='forward', dtype=name, count=1,
                                          why=None, entry=info.full_name, message=traceback.format_exc()[-600:])])
            out.write(json.dumps(res) + '\n')
            out.flush()


class Job:
    """Runs an entry in a child. After a crash another child runs the remaining dtypes; it leaves the call that crashed out
    and counts it as a failure, for at most CRASHES calls of a dtype."""

    def __init__(self, lib, info, dtypes, journal, args):
        self.lib, self.info, self.args, self.journal = lib, info, args, journal
        self.left = list(dtypes)
        self.board = mmap.mmap(-1, PROGRESS)
        self.crashed = {}  # text of a call of the first dtype that is left: how
        self.start()

    def start(self):
        r, w = os.pipe()
        self.said = tempfile.TemporaryFile()
        self.board[:1] = b'\0'
        sys.stdout.flush()
        self.pid = os.fork()
        if not self.pid:
            os.close(r)
            os.dup2(self.said.fileno(), 2)
            code = 1
            try:
                child(self.lib, self.info, self.left, self.args, w, self.board, self.crashed)
                code = 0
            finally:
                os._exit(code)
        os.close(w)
        self.fd, self.text = r, b''

    def read(self):
        """False if all dtypes are finished."""
        data = os.read(self.fd, 1 << 16)
        self.text += data
        if data:
            return True
        os.close(self.fd)
        _, status = os.waitpid(self.pid, 0)
        done = [json.loads(line) for line in self.text.decode().splitlines()]
        self.journal.add(done)
        self.left = self.left[len(done):]
        if done:
            self.crashed = {}
        if not self.left:
            return False
        what = self.board[:].split(b'\0')[0].decode(errors='replace')
        op = what.removeprefix('backward of ').split('(')[0] or '(PyTorch)'
        how = f'signal {os.WTERMSIG(status)}' if os.WIFSIGNALED(status) else \
            f'exit {os.WEXITSTATUS(status)}'
        how = 'no end' if 'signal 14' in how else how
        self.said.seek(0)
        for line in self.said.read().decode(errors='replace').splitlines():
            if 'runtime error' in line or 'SUMMARY' in line or 'ssertion' in line or line.startswith('cuda_host'):
                how += f', {line[:200]}'
        if what and how != 'no end' and len(self.crashed) < CRASHES and what not in self.crashed:
            self.crashed[what] = how
            self.start()
            return True
        self.crashed = {}
        row = dict(dict.fromkeys(replay.COUNTS, 0), operator=op, kind='forward',
                   dtype=self.left[0], failed=int(bool(what)))
        fault = dict(operator=op, kind='forward', dtype=self.left[0], count=1,
                     why=None, entry=self.info.full_name, message=f'CRASH, {how}, in {what}')
        note = [] if what else [dict(fault, message=f'PyTorch itself, {how}: {self.info.full_name}')]
        row['na'] = len(note)
        self.journal.add([dict(entry=self.info.full_name, dtype=self.left[0], rows=[row],
                               notes=note, failures=[fault] if what else [], missing={},
                               samples=0)])
        self.left = self.left[1:]
        if not self.left:
            return False
        self.start()
        return True


class Journal:
    """The results so far, a line for each entry and dtype. A line is valid for one build of the library only."""

    def __init__(self, args, go_on):
        code = hashlib.sha256()
        for path in [args.lib, *self.parts_of_plugin(args.device)]:
            with open(path, 'rb') as f:
                code.update(f.read())
        self.mark = f'{code.hexdigest()[:16]} {",".join(sorted(args.grad))} {args.device} 1/{args.every}'
        self.results, self.known = [], set()
        os.makedirs(args.out, exist_ok=True)
        path = os.path.join(args.out, 'results.jsonl')
        if go_on and os.path.exists(path):
            with open(path) as f:
                self.take(json.loads(line) for line in f if line.endswith('\n'))
        self.file = open(path, 'a' if go_on else 'w')

    @staticmethod
    def parts_of_plugin(device):
        plugin = os.environ.get('TENSOR_CUDA_PLUGIN')
        return sorted(glob.glob(os.path.join(os.path.dirname(plugin), '*.so*'))) if device == 'cuda' and plugin else []

    def take(self, results):
        for r in results:
            if r['mark'] == self.mark and (r['entry'], r['dtype']) not in self.known:
                self.known.add((r['entry'], r['dtype']))
                self.results.append(r)

    def add(self, results):
        for r in results:
            r['mark'] = self.mark
        self.take(results)
        self.file.write(''.join(json.dumps(r) + '\n' for r in results))
        self.file.flush()


def run_all(lib, infos, args):
    import select
    journal, began = Journal(args, args.go_on), time.time()
    todo = [(i, [d for d in args.dtypes if (i.full_name, d) not in journal.known]) for i in infos]
    todo, running = [t for t in reversed(todo) if t[1]], []
    entries = len(todo)
    while todo or running:
        while todo and len(running) < args.jobs:
            running.append(Job(lib, *todo.pop(), journal, args))
        ready, _, _ = select.select([j.fd for j in running], [], [])
        for job in list(running):
            if job.fd in ready and not job.read():
                running.remove(job)
                n = entries - len(todo) - len(running)
                if sys.stderr.isatty() or n % 100 == 0:
                    print(f'\r{n}/{entries} entries, {time.time() - began:.0f} s ', end='',
                          file=sys.stderr)
    print(file=sys.stderr)
    return journal.results


def need_device(lib):
    """Ends the program if there is no device. In a child: those of a process that has opened CUDA cannot use it."""
    pid = lib.is_host or os.fork()
    if not pid:
        try:
            lib.open_device()
            os._exit(0)
        except boxed.Failed as e:
            print(e, file=sys.stderr)
            os._exit(1)
    if not lib.is_host and os.waitpid(pid, 0)[1]:
        raise SystemExit(1)


def main():
    p = argparse.ArgumentParser(description=__doc__.split('\n')[0])
    p.add_argument('operators', nargs='*', help='entries of op_db by name (all)')
    p.add_argument('--dtype', default=','.join(boxed.DTYPES), help='f32,i64,... (all twelve)')
    p.add_argument('--lib', default='build/libtensor.so')
    p.add_argument('--out', default='build/conformance')
    p.add_argument('--jobs', type=int, default=os.cpu_count())
    p.add_argument('--grad', default='f16,bf16,f32,f64,c64,c128',
                   help='dtypes whose gradients are compared (all that have some)')
    p.add_argument('--no-variants', action='store_true', help='skip in-place and out forms')
    p.add_argument('--strict', action='store_true', help='only the named operators')
    p.add_argument('--samples', type=int, default=0, help='maximum number of samples for an entry and dtype')
    p.add_argument('--every', type=int, default=1, metavar='N', help='one sample of N of an entry and dtype')
    p.add_argument('--device', default='cpu', choices=('cpu', 'cuda'), help='where the tensors are (cpu)')
    p.add_argument('--timeout', type=int, default=300, help='time limit for an entry and dtype, in seconds')
    p.add_argument('--shard', default='0/1', help='I/N: every Nth entry, from the Ith')
    p.add_argument('--continue', dest='go_on', action='store_true',
                   help='skip entries that results.jsonl has for this library')
    p.add_argument('--threads', type=int, default=1, help='threads of libtensor')
    p.add_argument('--golden', help='write golden vectors to this file')
    p.add_argument('-v', '--verbose', action='store_true', help='print all failures, not only the first 3')
    args = p.parse_args()
    args.dtypes = [d for d in args.dtype.split(',') if d]
    args.torch = torch.__version__
    args.grad = set(args.grad.split(','))
    for d in args.dtypes:
        if d not in boxed.DTYPES:
            p.error(f'{d} is no dtype')
    lib = boxed.library(args.lib, args.device)
    need_device(lib)
    lib.so.tensor_set_num_threads(args.threads)
    infos = operator_table()
    if args.operators:
        wanted = {o.split('.')[0] if o.split('.')[0] in lib.by_base else o
                  for o in args.operators}
        args.operators = [o.rstrip('_') for o in wanted]
        infos = [i for i in infos if names_of(i) & (wanted | set(args.operators))]
        if not infos:
            p.error('no entry of op_db has such a name')
    # Exclude the million objects of PyTorch from the garbage collections of the children.
    gc.collect()
    gc.freeze()
    first, step = map(int, args.shard.split('/'))
    results = run_all(lib, infos[first::step], args)
    gc.unfreeze()
    if args.golden:
        golden.write(args.golden, [v for r in results for v in r.get('golden', ())],
                     bool(args.operators))
    return report.write(results, lib, args)


if __name__ == '__main__':
    sys.exit(main())
