# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A network with one hidden layer learns the 8x8 digits of examples/digits.

usage: mlp.py [EPOCHS [FILE]]: train to this number of epochs (20); continue from FILE if it exists, and save to it
"""
import sys

import devtensor as dt
import digits
from devtensor import nn

if __name__ == '__main__':
    dt.manual_seed(1)
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
    sys.exit(
    digits.main(
        model,
        lambda parameters: dt.optim.SGD(
            parameters,
            lr=0.1,
            momentum=0.9),
            epochs=20,
             least=0.85))
