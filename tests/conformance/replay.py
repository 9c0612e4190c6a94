# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Calls in libtensor every operator that PyTorch dispatches, with the same arguments.

Replay is a dispatch mode below autograd. Composites such as linear are replayed as one call if
libtensor has them; otherwise PyTorch calls their parts. Only the two tables that follow contain names
of operators.
"""
import concurrent.futures
import functools

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import boxed
import bridge
import decompositions
import explained
from bridge import Call, Unsupported, compare, fit

# PyTorch's name -> libtensor's, if they differ.
NAMES = {'cross_entropy_loss': 'cross_entropy', 'nll_loss_nd': 'nll_loss'}
# Operators whose results are uninitialised memory.
UNINITIALISED = {'empty', 'empty_like', 'empty_strided', 'empty_permuted', 'new_empty',
                 'new_empty_strided', 'resize', 'resize_', 'resize_as_', 'set_'}
# Operators whose indices are not unique: any that select the same values are correct.
ANY_INDEX = {'kthvalue', 'median', 'nanmedian', 'mode', 'topk', 'sort', 'argsort'}
LONGEST = 3900  # bytes of a call's text that identify it
REPEATS = 8  # of a call with the same shapes and scalars, in an entry and dtype
REFUSED_DTYPE = ('not implemented for', 'not supported', 'unsupported dtype', 'not yet implemented')


COUNTS = ('passed', 'explained', 'failed', 'na', 'bits', 'layout', 'closer', 'fallback')
CPU_FAILS = 'the CPU fails, too'


class Tally:
    """Counts and first messages by (operator, kind), for one dtype."""

    def __init__(self, dtype):
        self.dtype = dtype
        self.rows, self.failures, self.missing, self.notes = {}, {}, {}, {}

    def count(self, op, kind, what):
        row = self.rows.setdefault((op, kind), dict.fromkeys(COUNTS, 0))
        row[what] += 1

    def passed(self, op, kind, verdict=None, closer=False, fallback=False):
        self.count(op, kind, 'passed')
        if fallback:
            self.count(op, kind, 'fallback')
        if closer:
            self.count(op, kind, 'closer')
        if verdict is None or verdict.bits:
            self.count(op, kind, 'bits')
        if verdict is not None and not verdict.layout:
            self.count(op, kind, 'layout')

    def failed(self, op, kind, message):
        why = explained.reason(op, kind, self.dtype, message)
        self.count(op, kind, 'explained' if why else 'failed')
        # Failures whose texts differ only in numbers have one entry.
        key = (op, kind, ''.join('#' if c.isdigit() else c for c in message[:60]), why)
        f = self.failures.setdefault(key, [0, message])
        f[0] += 1

    def not_applicable(self, op, kind, why):
        self.count(op, kind, 'na')
        key = (op, kind, ''.join('#' if c.isdigit() else c for c in str(why)[:60]))
        self.notes.setdefault(key, [0, str(why)])[0] += 1


OTHER_THREAD = concurrent.futures.ThreadPoolExecutor(1)


def flat(x):
    return [j for i in x for j in flat(i)] if isinstance(x, (list, tuple)) else [x]


def overlaps(t):
    """Whether two elements share memory."""
    if not t.numel() or t.layout is not torch.strided:
        return False
    where = torch.zeros([], dtype=torch.int64)
    for n, stride in zip(t.shape, t.stride()):
        where = where.unsqueeze(-1) + torch.arange(n) * stride
    return where.unique().numel() < t.numel()


def same_values_at(self, dim, indices, others):
    """Whether both indices select the same values."""
    if not self.dim():
        return True
    dim = -1 if dim is None else dim
    a, b = (self.gather(dim, i if i.dim() == self.dim() else i.unsqueeze(dim))
            for i in (indices, others))
    return torch.equal(a, b) or torch.allclose(a, b, 0, 0, equal_nan=True)


def describe(x):
    if isinstance(x, torch.Tensor):
        text = f'{bridge.OURS.get(x.dtype, x.dtype)}{list(x.shape)}'
        return text + ('' if x.is_contiguous() else f'/{list(x.stride())}')
    if isinstance(x, (list, tuple)):
        return '[' + ', '.join(describe(i) for i in x) + ']'
    return str(x)


def map_tensors(fn, x):
    if isinstance(x, torch.Tensor) or fn is wide and isinstance(x, torch.dtype):
        return fn(x)
    if isinstance(x, (list, tuple)):
        return type(x)(map_tensors(fn, i) for i in x)
    if isinstance(x, dict):
        return {k: map_tensors(fn, v) for k, v in x.items()}
    return x


def copy(x):
    """The same tensors, each on a copy of its storage."""
    def one(t):
        if t.layout is not torch.strided:
            return t.clone()
        return torch.empty(0, dtype=t.dtype).set_(t.untyped_storage().clone(), t.storage_offset(),
                                                  t.shape, t.stride())
    return map_tensors(one, x)


class Progress:
    """Calls identify a call that crashes or hangs: begin(text) before it, end() after it. `crashed` are the texts of those
    that have crashed in another process, each with a description of how."""

    def __init__(self, write=lambda text: None, crashed=()):
        self.write, self.crashed = write, dict(crashed)

    def crashed_before(self, text):
        """A text that says how the call crashes, or None."""
        return self.crashed.get(shortened(text))

    def begin(self, text):
        self.write(shortened(text))

    def end(self):
        self.write('')


def shortened(text):
    return text.encode()[:LONGEST].decode(errors='ignore')


class Replay(TorchDispatchMode):
    """With a device, a call that fails there is repeated on the CPU: if it fails there, too, it is not counted."""

    def __init__(self, lib, tally, progress, variants=True, only=None):
        super().__init__()
        self.lib, self.tally, self.progress, self.variants = lib, tally, progress, variants
        self.host = None if lib.is_host else lib.on_host()
        self.only, self.tolerance, self.grad_calls, self.n = only, None, None, 0
        self.seen, self.sink = {}, None  # a golden.Collector
        self.origin = None  # the functional call whose other forms are checked
        self.expected = None  # and its results, while its out form is checked

    # ---- finding the operator ------------------------------------------------------------------

    def candidates(self, func):
        base = func._opname
        inplace = base.endswith('_') and not base.endswith('__')
        stem = base.rstrip('_') if inplace else base
        name = NAMES.get(stem, stem) + ('_' if inplace else '')
        overload = '' if func._overloadname == 'default' else func._overloadname
        ops = self.lib.by_base.get(name, [])
        out = any(a.kwarg_only and a.alias_info and a.alias_info.is_write
                  for a in func._schema.arguments)
        ops = [o for o in ops if (o.variant == 'out') == out]
        return sorted(ops, key=lambda o: o.overload != overload)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if func.namespace != 'aten':
            return func(*args, **kwargs)
        ops = self.candidates(func)
        if not ops:
            if func._can_decompose():
                with self:
                    res = func.decompose(*args, **kwargs)
                if res is not NotImplemented:
                    return res
            name = func._opname if func._overloadname == 'default' else \
                f'{func._opname}.{func._overloadname}'
            self.tally.missing[name] = self.tally.missing.get(name, 0) + 1
            return func(*args, **kwargs)
        if self.only and not any(o.base.rstrip('_') in self.only for o in ops):
            return func(*args, **kwargs)
        keep = copy((args, kwargs)) if self.variants and ops[0].variant == 'function' else None
        res, ok = self.check(ops, func, args, kwargs)
        if keep is not None and ok and not ok.tags & {'view'}:
            self.origin = (func, *keep)
            self.check_variants(func, ok, *keep, res)
            self.origin = None
        return res

    # ---- one call ------------------------------------------------------------------------------

    def check(self, ops, func, args, kwargs):
        """Calls both; returns PyTorch's result and the operator if they agreed, else None."""
        if ops[0].variant == 'function':  # below autograd some kernels of PyTorch do not see these flags
            args, kwargs = (map_tensors(lambda t: t.resolve_conj().resolve_neg(), x)
                            for x in (args, kwargs))
        given, why = bridge.bind(func, args, kwargs), 'no schema fits'
        for op in ops:
            try:
                call = Call(self.lib)
                fitted = fit(op, func, given)
                ours = {k: call.value(v) for k, v in fitted.items()}
                again = self.on_host(fitted)
                break
            except (Unsupported, boxed.Failed) as e:
                why = e if why == 'no schema fits' else why
        else:
            self.tally.not_applicable(ops[0].name, 'forward', why)
            return func(*args, **kwargs), None
        text = f'{op.name}({", ".join(f"{k}={describe(v)}" for k, v in given.items())})'
        if self.skip(text):
            return func(*args, **kwargs), None
        taken = self.sink.before(op, call, fitted, text) if self.sink else None
        crash = self.progress.crashed_before(text)
        if crash:
            self.tally.failed(op.name, 'forward', f'CRASH, {crash} -- in {text}')
            return func(*args, **kwargs), None
        self.progress.begin(text)
        try:
            ref, refused = self.reference(func, args, kwargs), None
        except Exception as e:
            ref, refused = None, e
        before = self.lib.fallbacks()
        try:
            rets, failed = self.lib.call(op, ours), None
        except boxed.Failed as e:
            rets, failed = [], e
        except boxed.Unsupported as e:
            self.tally.not_applicable(op.name, 'forward', e)
            if refused is not None:
                raise refused
            return ref, None
        finally:
            self.progress.end()
        if refused is not None:
            self.judge_error(op, text, refused, failed, again)
            raise refused
        foreign = [r.dtype for r in flat([ref]) if isinstance(r, torch.Tensor) and
                   r.dtype not in bridge.OURS]
        if foreign:
            self.tally.not_applicable(op.name, 'forward', f'dtype {foreign[0]}')
            return ref, None
        compare_results = functools.partial(self.difference, op, func, args, kwargs, fitted, ref)
        message, verdict, closer = (failed.text, None, False) if failed else compare_results(call, rets)
        if message and not closer:
            if again and self.host_fails(op, again, compare_results):
                self.tally.not_applicable(op.name, 'forward', CPU_FAILS)
            else:
                self.tally.failed(op.name, 'forward', f'{message} -- in {text}')
            return ref, None
        self.tally.passed(op.name, 'forward', verdict, closer, self.lib.fallbacks() > before)
        shape_only = self.is_shape_only(func)
        if taken is not None and not shape_only and not closer:
            self.sink.after(op, call, taken, flat([ref]) if op.nreturns else [], self.tolerance)
        if self.grad_calls is not None and op.variant == 'function' and not shape_only:
            self.grad_calls.append((op, func, copy(args), copy(kwargs), text))
        return ref, op

    def on_host(self, fitted):
        """The converted arguments for the CPU: (call, values)."""
        if not self.host:
            return None
        call = Call(self.host)
        return call, {k: call.value(v) for k, v in fitted.items()}

    def host_fails(self, op, again, compare_results):
        call, values = again
        try:
            message, _, closer = compare_results(call, self.host.call(op, values))
            return message and not closer
        except (boxed.Failed, boxed.Unsupported):
            return True

    def host_accepts(self, op, again):
        try:
            self.host.call(op, again[1])
            return True
        except (boxed.Failed, boxed.Unsupported):
            return False

    @staticmethod
    def reference(func, args, kwargs):
        """PyTorch's result. Composites and calls with complex tensors run in another thread: a dispatch mode
        excludes the keys that resolve lazy conjugates, which operators make of complex tensors."""
        complexes = any(isinstance(t, torch.Tensor) and t.is_complex() for t in flat([args, kwargs]))
        if func._schema.is_mutable or func.is_view or not (complexes or func._can_decompose()):
            return func(*args, **kwargs)

        def call():
            with torch.no_grad():
                return map_tensors(lambda t: t.resolve_conj().resolve_neg(), func(*args, **kwargs))
        return OTHER_THREAD.submit(call).result()

    def skip(self, text):
        """Limits repeated calls (for example in a composite's loop)."""
        n = self.seen[text] = self.seen.get(text, 0) + 1
        return n > REPEATS

    def judge_error(self, op, text, refused, failed, again):
        why = str(refused)
        if isinstance(refused, NotImplementedError) or any(s in why for s in REFUSED_DTYPE):
            self.tally.not_applicable(op.name, 'error', 'a dtype that PyTorch lacks')
        elif failed is None and again and self.host_accepts(op, again):
            self.tally.not_applicable(op.name, 'error', CPU_FAILS)
        elif failed is None:
            self.tally.failed(op.name, 'error', f'accepted {text}; PyTorch: {why[:200]}')
        elif not failed.text or failed.code <= 0:
            self.tally.failed(op.name, 'error', f'refused without a message: {text}')
        else:
            self.tally.passed(op.name, 'error')

    @staticmethod
    def is_shape_only(func):
        return func._opname in UNINITIALISED or torch.Tag.nondeterministic_seeded in func.tags

    def difference(self, op, func, args, kwargs, fitted, ref, call, rets):
        """A message or None, the verdict, and whether the results that differ are nearer to the exact ones."""
        shape_only = self.is_shape_only(func)
        view = 'view' in op.tags and op.variant == 'function'
        refs, got = flat([ref]) if op.nreturns else [], flat(rets)
        pairs = list(zip(refs, got))
        message, verdict = None, bridge.Verdict()
        if len(refs) != len(got):
            message = f'{len(refs)} results expected, got {len(got)}'
        # An argument that was written to is a result.
        for a in op.args:
            if a.mutated:
                pairs += [(t, call.tensor(t)) for t in flat([fitted.get(a.name)])
                          if isinstance(t, torch.Tensor)]
        for i, (r, g) in enumerate(pairs):
            if message:
                break
            message = compare(g, r, self.tolerance, shape_only, view, verdict).message
            if message and message.startswith('values') and func._opname in ANY_INDEX and \
                    i % len(refs) == len(refs) - 1 and (len(refs) == 2 or
                                                        func._opname == 'argsort'):
                if same_values_at(fitted['self'], fitted.get('dim'), r, bridge.look(g)):
                    message = verdict.message = None
            if message and message.startswith('values') and \
                    decompositions.is_one(func._opname, i % len(got), fitted, [bridge.look(t) for t in got],
                                          self.tolerance):
                message = verdict.message = None
        if not message and view:
            base = next((v for v in fitted.values() if isinstance(v, torch.Tensor)), None)
            if base is not None and base.numel() and not all(
                    call.lib.so.tensor_shares_storage(g.ptr, call.tensor(base).ptr) for g in got):
                message = 'not a view: the result has memory of its own'
        if message and op.variant == 'out' and self.expected and all(
                compare(g, r, self.tolerance).message is None for r, g in zip(self.expected, got)):
            message = f"PyTorch's out form is not its function: {message}"
        near = self.near(op, func, args, kwargs, refs, got) \
            if message and message.startswith('values') else None
        closer = near == 'closer'
        if near == 'rounding':
            message = f'rounding: {message}'
        return message, verdict, closer

    def near(self, op, func, args, kwargs, refs, got):
        """The error relative to the result in wider arithmetic; see how_near()."""
        if op.variant == 'out' or func._opname.endswith('_'):
            if not self.origin:
                return None
            func, args, kwargs = self.origin
        try:
            return how_near(flat([func(*map_tensors(wide, args), **map_tensors(wide, kwargs))]),
                            refs, got)
        except Exception:
            return None

    # ---- in-place and out forms of calls that agreed -------------------------------------------

    def check_variants(self, func, op, args, kwargs, ref):
        packet = getattr(torch.ops.aten, func._opname + '_', None)
        inplace = getattr(packet, func._overloadname, None) if packet else None
        if inplace is not None and self.lib.by_base.get(op.base + '_'):
            if args and isinstance(args[0], torch.Tensor) and overlaps(args[0]):
                self.tally.not_applicable(inplace._opname, 'forward', 'a tensor whose elements '
                                          'share memory: the result depends on the order of writes')
            else:
                self.attempt(inplace, *copy((args, kwargs)))
        self.n += 1
        refs = flat([ref])
        if not all(isinstance(r, torch.Tensor) and r.layout is torch.strided for r in refs):
            return
        packet = getattr(torch.ops.aten, func._opname)
        for name in packet.overloads():
            out = getattr(packet, name)
            writes = [a for a in out._schema.arguments if a.kwarg_only and a.alias_info and
                      a.alias_info.is_write]
            mine = [a.name for a in out._schema.arguments if a not in writes]
            if len(writes) != len(refs) or mine[:len(mine)] != \
                    [a.name for a in func._schema.arguments][:len(mine)] or \
                    [str(a.type) for a in out._schema.arguments if a not in writes] != \
                    [str(a.type) for a in func._schema.arguments][:len(mine)] or \
                    not all(a.kwarg_only for a in func._schema.arguments[len(mine):]):
                continue
            a, k = copy((args, {n: v for n, v in kwargs.items() if n in mine}))
            k.update({w.name: self.output(r) for w, r in zip(writes, refs)})
            if self.candidates(out):
                self.expected = refs
                self.attempt(out, a, k)
                self.expected = None
            break

    def output(self, ref):
        """Alternately contiguous, with gaps, or empty (to be resized)."""
        form = self.n % 3
        if form == 1 and ref.numel():
            gap = torch.zeros([2 * n for n in ref.shape], dtype=ref.dtype)
            return gap[tuple(slice(None, None, 2) for _ in ref.shape)]
        if form == 2:
            return torch.empty(0, dtype=ref.dtype)
        return torch.zeros(ref.shape, dtype=ref.dtype)

    def attempt(self, func, args, kwargs):
        ops = self.candidates(func)
        if not ops:
            return
        try:
            self.check(ops, func, args, kwargs)
        except Exception:  # PyTorch refused: the tally has libtensor's result
            pass


def wide(x):
    """A tensor converted to the wider dtype, or that dtype."""
    if isinstance(x, torch.dtype):
        return bridge.WIDER.get(x, x)
    return x.to(bridge.WIDER.get(x.dtype, x.dtype))


def how_near(exact, refs, got):
    """closer: the results are at least as near to the exact ones as PyTorch's. rounding: all are within
    four units in the last place of the largest element, or within four times PyTorch's own distance from
    the exact result, which is larger where the problem is ill-conditioned. None: neither."""
    said = 'closer'
    for e, r, g in zip(exact, refs, got):
        g = bridge.look(g)
        if r.dtype not in bridge.WIDER:
            if not torch.equal(g, r):
                return None
            continue
        finite = torch.isfinite(e.to(r.dtype))
        if not torch.equal(torch.isfinite(g), finite):
            return None
        g, r = (torch.where(finite, (x.to(e.dtype) - e).abs(), 0) for x in (g, r))
        r = torch.nan_to_num(r, nan=torch.inf)  # PyTorch's NaN in place of a number
        if not g.numel() or g.max() <= r.max():
            continue
        last_place = torch.finfo(refs[0].dtype).eps * torch.where(finite, e.abs(), 0).max()
        if not g.max() <= 4 * torch.fmax(last_place, r.max()):
            return None
        said = 'rounding'
    return said
