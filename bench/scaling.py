#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""How rows gain from threads: measured on 2, simulated on 2, 4, 16 and 64 (bench/scaling.c).

usage: bench/scaling.py BUILD [--row ROW]... [--all]

Without --row: a choice of operators with the shapes of models, --all: those of the group models. A row whose 2 threads
are less than 1.7 times as fast as one says why: the time outside of chunks, or chunks that cannot be divided evenly."""
import argparse
import statistics
import subprocess
import sys

sys.dont_write_bytecode = True

ROWS = [
    'linear f32[512,768] f32[3072,768] f32[3072]', 'linear bf16[512,768] bf16[3072,768] bf16[3072]',
    'linear f32[1,4096] f32[11008,4096] f32[11008]', 'mm f32[77,301] f32[301,513]', 'bmm f32[48,256,64] f32[48,64,256]',
    'scaled_dot_product_attention f32[4,12,256,64] f32[4,12,256,64] f32[4,12,256,64] - 0.0 true',
    'convolution f32[8,64,28,28] f32[64,64,3,3] f32[64] (1,1) (1,1) (1,1) false (0,0) 1',
    'convolution bf16[8,256,14,14] bf16[1024,256,1,1] bf16[1024] (1,1) (0,0) (1,1) false (0,0) 1',
    'convolution_backward f32[8,64,28,28] f32[8,64,28,28] f32[64,64,3,3] - (1,1) (1,1) (1,1) false (0,0) 1 (0,1,0)',
    'native_layer_norm f32[512,768] (768) f32[768] f32[768] 0.00001', '_softmax f32[8,12,128,128] -1 false',
    '_log_softmax f32[128,50257] -1 false', 'add.Tensor f32[512,768] f32[512,768]', 'gelu f32[512,3072]',
    'sum.dim_IntList f32[4096,1024] (1)', 'sum.dim_IntList f32[4096,1024] (0)', 'sort f32[64,4096] 1',
    'embedding f32[50257,768] i64[8,128]<50257',
    'native_batch_norm f32[8,64,56,56] f32[64] f32[64] f32[64] f32[64]:p true 0.1 0.00001',
    'max_pool2d_with_indices f32[8,64,56,56] (3,3) (2,2) (1,1)', 'step_gpt', 'step_resnet_224', 'step_lstm',
]
COUNTS = (2, 4, 16, 64)


class Side:
    def __init__(self, program, threads):
        self.program = subprocess.Popen([program, str(threads)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def ask(self, line):
        print(line, file=self.program.stdin, flush=True)
        answer = self.program.stdout.readline().split()
        return [float(x) for x in answer[1:]] if answer[:1] == ['ok'] else None


def why(measured, one, parallel, simulated):
    """What keeps two threads from being 1.7 times as fast."""
    if measured >= 1.7:
        return ''
    if one - parallel > 0.15 * one:
        return f'{100 * (one - parallel) / one:.0f} % outside of chunks'
    if one / simulated[0] < 1.7:
        return 'uneven chunks, or short ones'
    return 'memory or caches, which threads share; other load'


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('build')
    parser.add_argument('--row', action='append')
    parser.add_argument('--all', action='store_true')
    args = parser.parse_args()
    rows = args.row or ROWS
    if args.all:
        from models import models
        rows = list(models())
    simulated = Side(f'{args.build}/bench/scaling', 1)
    sides = [Side(f'{args.build}/bench/ours', n) for n in (1, 2)]
    print('| row | ranges | chunks | in chunks | 2 threads, measured | ' +
          ''.join(f'{n}, simulated | ' for n in COUNTS) + 'why below 1.7 |')
    print('|---' * (6 + len(COUNTS)) + '|')
    for row in rows:
        found = simulated.ask(f'scale 20 {row}')
        times = [[], []]
        for _ in range(3):
            for side, t in zip(sides, times):
                t.extend(side.ask(f'time 9 5 {row}') or [])
        if not found or not all(times):
            print(f'| {row} | failed |')
            continue
        one, parallel, ranges, chunks, *more = found
        measured = statistics.median(times[0]) / statistics.median(times[1])
        print(f'| {row} | {ranges:.0f} | {chunks:.0f} | {100 * parallel / one:.0f} % | {measured:.2f} | ' +
              ''.join(f'{one / t:.1f} | ' for t in more) + f'{why(measured, one, parallel, more)} |', flush=True)


if __name__ == '__main__':
    main()
