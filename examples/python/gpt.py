# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""A GPT of characters that learns the text of the GNU General Public License, which Debian has, and continues it.

usage: gpt.py [STEPS [FILE]]: train to this number of steps (400); continue from FILE if it exists, and save to it"""
import os
import sys

import devtensor as dt
from devtensor import nn

LAYERS, EMBED, HEADS, LENGTH, BATCH, SYMBOLS = 2, 64, 4, 32, 16, 128
TEXT = '/usr/share/common-licenses/GPL-3'


class GPT(nn.Module):
    def __init__(self):
        super().__init__()
        self.symbol, self.position = nn.Embedding(SYMBOLS, EMBED), nn.Embedding(LENGTH, EMBED)
        self.blocks = nn.ModuleList(nn.TransformerEncoderLayer(EMBED, HEADS, 4 * EMBED, 0, 'gelu', batch_first=True,
                                                               norm_first=True)
                                    for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(EMBED), nn.Linear(EMBED, SYMBOLS)
        self.register_buffer('mask', nn.Transformer.generate_square_subsequent_mask(LENGTH), persistent=False)

    def forward(self, symbols):
        x = self.symbol(symbols) + self.position(dt.arange(symbols.shape[1]))
        for block in self.blocks:
            x = block(x, self.mask, is_causal=True)
        return self.head(self.norm(x))


def main(steps=400, path=None):
    text = dt.tensor([c % SYMBOLS for c in open(TEXT, 'rb').read(40000)])
    dt.manual_seed(1)
    model, step = GPT(), 0
    optimizer = dt.optim.AdamW(model.parameters(), lr=3e-3)
    if path and os.path.exists(path):
        saved = dt.utils.load_state(path)
        model.load_state_dict(saved['model'])
        optimizer.load_state_dict(saved['optimizer'])
        step = saved['step']
    while step < steps:
        begin = [(step * BATCH + b) * 7919 % (len(text) - LENGTH - 1) for b in range(BATCH)]
        rows = dt.stack([text[i:i + LENGTH + 1] for i in begin])
        loss = nn.functional.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        step += 1
        print(step, loss.item())
    if path:
        dt.utils.save_state({'model': model.state_dict(), 'optimizer': optimizer.state_dict(), 'step': step}, path)
    with dt.no_grad():
        for i in range(80):
            text[i + LENGTH] = model(text[i:i + LENGTH][None])[0, -1].argmax()
    print(''.join(map(chr, text[LENGTH:LENGTH + 80].tolist())))


if __name__ == '__main__':
    main(*map(int, sys.argv[1:2]), *sys.argv[2:])
