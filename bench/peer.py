# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The rows of bench/ours in PyTorch and NumPy, written as in programs that use them.

usage: peer.py torch|numpy THREADS; requests on stdin as in bench/ours/main.c.

A row is a function that sets up and returns (run, value): run(n) does the work n times, value()
returns the number that all sides must compute, or value is None.
"""
import gc
import math
import sys
import time

from calls import numpy_row, torch_row

SIDE, THREADS = sys.argv[1], int(sys.argv[2])
ROWS = {}


def row(function):
    ROWS[function.__name__] = function
    return function


# ---- PyTorch ----------------------------------------------------------------------------------

if SIDE == "torch":
    import torch
    import torch.multiprocessing as mp
    from torch import nn
    from torch.nn import functional as F

    import peer_steps

    torch.set_num_threads(THREADS)

    def wave(shape, seed, scale=1.0):
        n = math.prod(shape)
        values = [scale * math.sin(seed + 0.37 * i) for i in range(n)]
        return torch.tensor(values, dtype=torch.float32).reshape(shape)

    def tiny(op, compare=True):
        """A row of one operator on two 4 x 4 matrices, without gradients."""
        def setup():
            with torch.inference_mode():
                a, b = wave((4, 4), 0), wave((4, 4), 1)

            def run(n):
                with torch.inference_mode():
                    op(a, b, n)

            def value():
                with torch.inference_mode():
                    return op(a, b, 1).double().sum().item()
            return run, value if compare else None
        return setup

    def empty(a, b, n):
        for _ in range(n):
            r = torch.empty((4, 4))
        return r

    def add(a, b, n):
        for _ in range(n):
            r = a + b
        return r

    def add_out(a, b, n):
        out = torch.empty((4, 4))
        for _ in range(n):
            torch.add(a, b, out=out)
        return out

    def view(a, b, n):
        for _ in range(n):
            r = a.view(16)
        return r

    def select(a, b, n):
        for _ in range(n):
            r = a.select(0, 1)
        return r

    def sum_(a, b, n):
        for _ in range(n):
            r = a.sum()
        return r

    def mm(a, b, n):
        for _ in range(n):
            r = a.mm(b)
        return r

    def softmax(a, b, n):
        for _ in range(n):
            r = torch.softmax(a, 1)
        return r

    for op in (add, add_out, view, select, sum_, mm, softmax):
        ROWS[op.__name__.rstrip("_")] = tiny(op)
    ROWS["empty"] = tiny(empty, compare=False)

    def with_grad():
        return (wave((4, 4), 0).requires_grad_(), wave((4, 4), 1).requires_grad_(),
                wave((4, 4), 2))

    @row
    def add_grad():
        a, b, _ = with_grad()

        def run(n):
            for _ in range(n):
                a + b
        return run, lambda: (a + b).sum().item()

    @row
    def add_backward():
        a, b, g = with_grad()

        def run(n):
            for _ in range(n):
                (a + b).backward(g)
                a.grad = b.grad = None

        def value():
            (a + b).backward(g)
            return (a.grad + b.grad).sum().item()
        return run, value

    # -- convolution, relu and pooling in sequence

    def chain_row(blocked):
        def setup():
            with torch.inference_mode():
                x, w = wave((1, 64, 56, 56), 0), wave((64, 64, 3, 3), 1, 0.05)
                if blocked:
                    x = x.to_mkldnn()
                    w = torch._C._nn.mkldnn_reorder_conv2d_weight(w.to_mkldnn(), 1)

            def chain():
                y = torch.mkldnn_convolution(x, w, None, (1, 1), (1, 1), (1, 1), 1) if blocked else \
                    F.conv2d(x, w, padding=1)
                return F.max_pool2d(torch.relu(y), 2)

            def run(n):
                with torch.inference_mode():
                    for _ in range(n):
                        chain()

            def value():
                with torch.inference_mode():
                    y = chain()
                    return (y.to_dense() if blocked else y).double().sum().item()
            return run, value
        return setup

    ROWS["chain"], ROWS["chain_blocked"] = chain_row(False), chain_row(True)

    # -- the RNN cell: weights need gradients, the input and the previous state do not

    def rnn():
        W_x = wave((20, 10), 0, 0.3).requires_grad_()
        W_h = wave((20, 20), 1, 0.2).requires_grad_()
        x, prev_h = wave((1, 10), 2), wave((1, 20), 3)

        def forward():
            i2h = torch.mm(W_x, x.t())
            h2h = torch.mm(W_h, prev_h.t())
            return torch.tanh(i2h + h2h)

        def backward():
            forward().sum().backward()

        def step():
            backward()
            with torch.no_grad():
                for w in (W_x, W_h):
                    w.sub_(w.grad, alpha=0.01)
                    w.grad = None
        return forward, backward, step, (W_x, W_h)

    def repeat(f):
        def run(n):
            for _ in range(n):
                f()
        return run

    @row
    def rnn_forward():
        forward, _, _, _ = rnn()
        return repeat(forward), lambda: forward().sum().item()

    @row
    def rnn_backward():
        _, backward, _, w = rnn()

        def once():
            backward()
            w[0].grad = w[1].grad = None

        def value():
            backward()
            return (w[0].grad.sum() + w[1].grad.sum()).item()
        return repeat(once), value

    @row
    def rnn_step():
        _, _, step, w = rnn()

        def value():
            for _ in range(3):
                step()
            return (w[0].sum() + w[1].sum()).item()
        return repeat(step), value

    # -- MLP 64-128-10, batch 32, SGD with momentum

    def mlp(**how):
        def setup():
            model = nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
            with torch.no_grad():
                for p, seed in zip(model.parameters(), range(4)):
                    p.copy_(wave(tuple(p.shape), seed, 0.1))
            x = wave((32, 64), 4)
            target = torch.arange(32) % 10
            opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, **how)

            def step():
                loss = F.cross_entropy(model(x), target)
                opt.zero_grad()
                loss.backward()
                opt.step()
                return loss

            def value():
                for _ in range(5):
                    loss = step()
                return loss.item()
            return repeat(step), value
        return setup

    ROWS.update(peer_steps.ROWS)
    ROWS["mlp_step"] = mlp()
    ROWS["mlp_step_foreach"] = mlp(foreach=True)
    ROWS["mlp_step_fused"] = mlp(fused=True)

    # -- large

    BIG = 16 << 20

    def big():
        return torch.full((BIG,), 0.25), torch.full((BIG,), 0.5)

    @row
    def add_64m():
        with torch.inference_mode():
            a, b = big()

        def run(n):
            with torch.inference_mode():
                for _ in range(n):
                    a + b
        return run, lambda: (a + b).double().sum().item()

    @row
    def add_out_64m():
        with torch.inference_mode():
            a, b = big()
            out = torch.zeros(BIG)

        def run(n):
            with torch.inference_mode():
                for _ in range(n):
                    torch.add(a, b, out=out)
        return run, None

    # -- to another process and back

    def answer(get, put):
        """The other process: sends tensors back until it receives None."""
        torch.set_num_threads(1)
        while (t := get()) is not None:
            put(t)
            del t

    def other_process(strategy, kind):
        """(send, receive, stop) of a process that answers, over a Queue or a Pipe."""
        mp.set_sharing_strategy(strategy)
        if kind == "queue":
            there, back = mp.Queue(), mp.Queue()
            put, get, ends = there.put, back.get, (there.get, back.put)
        else:
            ours, theirs = mp.Pipe()
            put, get, ends = ours.send, ours.recv, (theirs.recv, theirs.send)
        process = mp.Process(target=answer, args=ends, daemon=True)
        process.start()

        def stop():
            put(None)
            process.join()
        return put, get, stop

    def handoff(nbytes, strategy, kind):
        def setup():
            put, get, stop = other_process(strategy, kind)
            t = torch.full((nbytes // 4,), 0.5).share_memory_()

            def run(n):
                for _ in range(n):
                    put(t)
                    get()

            def value():
                put(t)
                return get()[-1].item()
            return run, value, stop
        return setup

    def handoff_fresh(nbytes, strategy, kind, shared):
        def make():
            if not shared:
                return torch.full((nbytes // 4,), 0.5)
            storage = torch.UntypedStorage._new_shared(nbytes)
            t = torch.empty(0, dtype=torch.float32).set_(storage, 0, (nbytes // 4,))
            return t.fill_(0.5)

        def setup():
            put, get, stop = other_process(strategy, kind)

            def run(n):
                for _ in range(n):
                    put(make())
                    get()

            def value():
                put(make())
                return get()[-1].item()
            return run, value, stop
        return setup

    for nbytes, label in ((1 << 20, "1m"), (1 << 30, "1g")):
        for strategy, short in (("file_descriptor", "fd"), ("file_system", "fs")):
            for kind in ("queue", "pipe"):
                ROWS[f"handoff_{label}_{kind}_{short}"] = handoff(nbytes, strategy, kind)
            for shared in (False, True):
                name = f"fresh_{label}_{'inplace_' if shared else ''}{short}"
                ROWS[name] = handoff_fresh(nbytes, strategy, "pipe", shared)

# ---- NumPy --------------------------------------------------------------------------------------

elif SIDE == "numpy":
    import numpy as np

    @row
    def add_64m():
        a, b = np.full(16 << 20, 0.25, np.float32), np.full(16 << 20, 0.5, np.float32)

        def run(n):
            for _ in range(n):
                a + b
        return run, lambda: float((a + b).sum(dtype=np.float64))

    @row
    def add_out_64m():
        a, b = np.full(16 << 20, 0.25, np.float32), np.full(16 << 20, 0.5, np.float32)
        out = np.zeros(16 << 20, np.float32)

        def run(n):
            for _ in range(n):
                np.add(a, b, out=out)
        return run, None


# ---- requests -----------------------------------------------------------------------------------

def timed(run, n):
    start = time.perf_counter_ns()
    run(n)
    return time.perf_counter_ns() - start


def calibrate(run, ns):
    spent, n = 0, 1
    while spent < 1e7:  # the same time as in bench/ours/main.c
        spent += timed(run, 1)
    while True:
        t = timed(run, n)
        if t >= ns / 2:
            return n if t >= ns else int(n * ns / t) + 1
        n *= 2


def find(row):
    """Set the row up: a function of this file, or an operator with arguments."""
    if row in ROWS:
        return ROWS[row]()
    if SIDE == "torch":
        return torch_row(torch)(row)
    return numpy_row(row)


def serve(line):
    words = line.split(" ", 3 if line.startswith("time") else 1)
    if words[0] in ("peak", "heap"):
        return f"ok {getattr(peer_steps, words[0])(words[1])}"
    made = find(words[-1])
    if made is None:
        return "none"
    run, value, *stop = made
    try:
        if words[0] == "value":
            return f"ok {value():.9g}" if value else "ok none"
        samples, ms = int(words[1]), float(words[2])
        n = calibrate(run, ms * 1e6)
        taken = []
        while len(taken) < samples and (len(taken) < 3 or sum(taken) < 10 * samples * ms * 1e6):
            taken.append(timed(run, n))
        return "ok " + " ".join(f"{t / n:.2f}" for t in taken)
    finally:
        for f in stop:
            f()


gc.disable()  # as timeit does
for line in sys.stdin:
    try:
        print(serve(line.strip()), flush=True)
    except Exception as e:
        print("error", type(e).__name__, str(e).replace("\n", " ")[:300], flush=True)
