# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A consumer of batches that a program in C produces: build/examples/produce python3 examples/python/consume.py

Standard input is a channel. Each message has x and a label for each row, on memory that returns to the producer's pool
when both are released here."""
import sys

from devtensor import sharing

with sharing.Channel(sys.stdin.fileno(), ring=True) as channel:
    batches = 0
    try:
        while True:
            (x, label), number = channel.recv_many(2)
            assert x.mean().item() == label.max().item() == number, number
            batches += 1
            del x, label
    except EOFError:
        print(f'received {batches} batches')
sys.exit(batches != 100)
