# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The digits of examples/digits, and a training that continues from a file, for mlp.py and lenet.py.

`tensorrun -n 4 python3 mlp.py` trains with four processes, each on its part of every epoch.
"""
import os
import sys

import devtensor as dt
from devtensor import distributed
from devtensor.utils.data import DataLoader, TensorDataset

CSV = os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'digits', 'digits.csv')


def load():
    """Data sets for training and test: images [1, 8, 8] between 0 and 1, and digits."""
    with open(CSV) as file:
        rows = dt.tensor([[int(v) for v in line.split(',')] for line in file])
    images, digits = (rows[:, :64] / 16).reshape(-1, 1, 8, 8), rows[:, 64]
    return TensorDataset(images[:1536], digits[:1536]), TensorDataset(images[1536:], digits[1536:])


def accuracy(model, data):
    """The part of the images whose digit is found."""
    images, digits = data.tensors
    model.eval()
    with dt.no_grad():
        right = (model(images).argmax(1) == digits).float().mean().item()
    model.train()
    return right


def train(model, make_optimizer, epochs, group, path=None):
    """Train to this number of epochs. With a path, continue from it if it exists, and save to it after each epoch."""
    train_data, test_data = load()
    loader = DataLoader(train_data, batch_size=32 // group.size, shuffle=True, generator=dt.Generator().manual_seed(1),
                        rank=group.rank, size=group.size)
    optimizer, epoch = make_optimizer(model.parameters()), 0
    if path and os.path.exists(path):
        saved = dt.utils.load_state(path)
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        loader.load_state_dict(saved['loader'])
        epoch = saved['epoch']
    parallel = distributed.DataParallel(model, group)
    while epoch < epochs:
        for images, digits in loader:
            loss = dt.nn.functional.cross_entropy(parallel(images), digits)
            optimizer.zero_grad()
            parallel.backward(loss)
            optimizer.step()
        epoch += 1
        loss = group.all_reduce(loss.detach(), 'mean')
        if group.rank > 0:
            continue
        print(epoch, loss.item(), accuracy(model, test_data), flush=True)
        if path:
            dt.utils.save_state({'model': model.state_dict(), 'optimizer': optimizer.state_dict(),
                                 'loader': loader.state_dict(), 'epoch': epoch}, path)
    return accuracy(model, test_data)


def main(model, make_optimizer, epochs, least):
    """The program: [EPOCHS [FILE]]. Fails if a complete training finds less than this part of the digits."""
    wanted = int(sys.argv[1]) if len(sys.argv) > 1 else epochs
    with distributed.init() as group:
        found = train(model, make_optimizer, wanted, group, sys.argv[2] if len(sys.argv) > 2 else None)
    return wanted >= epochs and found < least
