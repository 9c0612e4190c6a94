# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""LeNet learns the 8x8 digits of examples/digits, with Adam.

usage: lenet.py [EPOCHS [FILE]]: train to this number of epochs (20); continue from FILE if it exists, and save to it
"""
import sys

import devtensor as dt
import digits
from devtensor import nn
from devtensor.nn import functional as F


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 3, padding=1)
        self.fc1, self.fc2, self.fc3 = nn.Linear(64, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = F.relu(self.fc1(x.flatten(1)))
        return self.fc3(F.relu(self.fc2(x)))


if __name__ == '__main__':
    dt.manual_seed(1)
    sys.exit(digits.main(LeNet(), lambda parameters: dt.optim.Adam(parameters, lr=0.002), epochs=20, least=0.85))
