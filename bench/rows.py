# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The rows: work, peers, and the mark, the required ratio of the peer's time to that of libtensor."""
from collections import namedtuple

import operators

# side: the program (ours, torch, libtorch, numpy); row: its name there; mark: None if the row is
# shown for comparison only.
Peer = namedtuple("Peer", "side row label mark")
# The row of bench/ours, its title, numbers of threads, peers.
Row = namedtuple("Row", "group row title threads peers")

PYTHON, CXX = "PyTorch (Python)", "PyTorch (C++)"


def tiny(row, title):
    return Row("tiny", row, title, 1,
               [Peer("torch", row, PYTHON, 10), Peer("libtorch", row, CXX, 4)])


def add_64m(threads):
    return [
        Row("memory", "add_64m", "a + b, 64 MiB each", threads,
            [Peer("torch", "add_64m", PYTHON, 1), Peer("numpy", "add_64m", "NumPy", 1),
             Peer("ours", "triad_64m", "STREAM triad", 0.9)]),
        Row("memory", "add_out_64m", "a + b into c, 64 MiB each", threads,
            [Peer("torch", "add_out_64m", PYTHON, 1), Peer("numpy", "add_out_64m", "NumPy", 1),
             Peer("ours", "triad_64m", "STREAM triad", 0.9)]),
    ]


def handoff(label, words):
    return [
        Row("handoff", f"handoff_{label}", f"{words} to another process and back", 1,
            [Peer("torch", f"handoff_{label}_queue_fd", "torch Queue, file_descriptor", 20),
             Peer("torch", f"handoff_{label}_queue_fs", "torch Queue, file_system", 20),
             Peer("torch", f"handoff_{label}_pipe_fs", "torch Pipe, file_system", 20)]),
        Row("handoff", f"fresh_{label}", f"{words} made, filled, sent, answered", 1,
            [Peer("torch", f"fresh_{label}_fd", "torch, file_descriptor", 5),
             Peer("torch", f"fresh_{label}_fs", "torch, file_system", 5),
             Peer("torch", f"fresh_{label}_inplace_fd", "torch, filled in shared memory",
                  None)]),
    ]


def chain(threads):
    words = "conv2d 3 x 3, relu, max_pool2d of [1, 64, 56, 56]"
    return [
        Row("blocked", "chain", words, threads, [Peer("torch", "chain", PYTHON, 1)]),
        Row("blocked", "chain_blocked", words + ", blocked", threads,
            [Peer("torch", "chain_blocked", PYTHON + ", mkldnn", 1),
             Peer("ours", "chain", "ours, strided", 1)]),
    ]


def step(row, title, mark):
    """A step of training. The mark is that of PyTorch's default optimizer; the fused one may not be faster."""
    return [Row("steps", "step_" + row, title, threads,
                [Peer("torch", "step_" + row, PYTHON, mark), Peer("torch", f"step_{row}_fused", PYTHON + ", fused", 1)])
            for threads in (1, 2)]


def network(name, title):
    """A model in training and inference, in f32 and under autocast to bf16, beside PyTorch eager and compiled."""
    return [Row("networks", row := f"{kind}_{name}{dtype}", f"{title}, {words}{dtype.replace('_', ', ')}", threads,
                [Peer("torch", row + eager, PYTHON, 1), Peer("torch", row + "_compiled", "torch.compile", 1)])
            for kind, words, eager in (("step", "training", "_fused"), ("infer", "inference", ""))
            for dtype in ("", "_bf16") for threads in (1, 2)]


ROWS = [
    tiny("empty", "empty 4 x 4"),
    tiny("add", "add 4 x 4"),
    tiny("add_out", "add 4 x 4 into a given result"),
    tiny("view", "view 4 x 4 as 16"),
    tiny("select", "select a row of 4 x 4"),
    tiny("sum", "sum 4 x 4"),
    tiny("mm", "mm 4 x 4"),
    tiny("softmax", "softmax 4 x 4"),
    tiny("add_grad", "add 4 x 4, gradient recorded"),
    tiny("add_backward", "add 4 x 4 and its backward"),
    Row("training", "rnn_forward", "RNN cell forward, gradient recorded", 1,
        [Peer("torch", "rnn_forward", PYTHON, 5), Peer("libtorch", "rnn_forward", CXX, 4)]),
    Row("training", "rnn_backward", "RNN cell forward and backward", 1,
        [Peer("torch", "rnn_backward", PYTHON, 5), Peer("libtorch", "rnn_backward", CXX, 4)]),
    Row("training", "rnn_step", "RNN cell step: forward, backward, SGD", 1,
        [Peer("torch", "rnn_step", PYTHON, 5), Peer("libtorch", "rnn_step", CXX, None)]),
    Row("training", "mlp_step", "MLP 64-128-10, batch 32: step, SGD with momentum", 1,
        [Peer("torch", "mlp_step", PYTHON, 5),
         Peer("torch", "mlp_step_foreach", PYTHON + ", foreach", 5),
         Peer("torch", "mlp_step_fused", PYTHON + ", fused", 5),
         Peer("libtorch", "mlp_step", CXX, None)]),
    *step("rnn", "RNN cell, SGD", 5),
    *step("mlp", "MLP 64-128-10, batch 32, SGD with momentum", 5),
    *step("lenet", "LeNet on 8 x 8, batch 8, Adam", 5),
    *step("lenet_64", "LeNet on 8 x 8, batch 64, Adam", 1),
    *step("lstm", "LSTM 2 x 256, 32 steps, batch 16, Adam", 1),
    *step("resnet", "ResNet-18 on 32 x 32, batch 8, SGD with momentum", 1.3),
    *step("resnet_224", "ResNet-18 on 224 x 224, batch 8, SGD with momentum", 1.3),
    *step("gpt", "GPT 6 x 256, 4 x 128 symbols, AdamW", 1.3),
    *network("resnet_224", "ResNet-18 on 224 x 224, batch 8"),
    *network("mobilenet", "MobileNetV2 on 224 x 224, batch 8"),
    *network("gpt", "GPT 6 x 256, 4 x 128 symbols"),
    *network("lstm", "LSTM 2 x 256, 32 steps, batch 16"),
    *add_64m(1), *add_64m(2),
    *chain(1), *chain(2),
    *handoff("1m", "1 MiB"), *handoff("1g", "1 GiB"),
]

# Groups whose rows have the memory that they need measured, too.
PEAKS = {"steps"}

# The required geometric mean of a group's rows, in addition to the mark of each.
MEANS = {}
for group, (specs, mean) in operators.GROUPS.items():
    MEANS[group] = mean
    ROWS += [Row(group, spec, spec, threads, [Peer("torch", spec, PYTHON, operators.mark(group, spec))] +
                 [Peer("numpy", spec, "NumPy", operators.mark(group, spec))] *
                 (threads == 1 and group != "random" and operators.numpy_has(spec)))
             for threads in (1, 2) for spec in specs()]

GROUPS = list(dict.fromkeys(r.group for r in ROWS)) + ["build"]
