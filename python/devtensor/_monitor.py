# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""devtensor.monitor(): a live table and history of buffers, in a terminal or a notebook. tensorstat is the tool for
scripts; where it is installed its rows are shown, so that buffers of other processes are listed, too."""
import html
import json
import os
import shutil
import subprocess
import sys
import time

from devtensor import _C

COLUMNS = ('id', 'name', 'dtype', 'shape', 'size', 'refs', 'owner', 'state')
BARS = ' ▁▂▃▄▅▆▇█'
HISTORY = 60


def bytes_text(n):
    """'1.5 MiB'"""
    for unit in ('B', 'KiB', 'MiB', 'GiB'):
        if n < 1024:
            return f'{n:.0f} {unit}' if unit == 'B' or n >= 100 else f'{n:.1f} {unit}'
        n /= 1024
    return f'{n:.1f} TiB'


def text_of(column, value):
    if value is None:
        return ''
    if column == 'size' and isinstance(value, (int, float)):
        return bytes_text(value)
    if isinstance(value, dict):
        return ' '.join(map(str, value.values()))
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(map(str, value)) + ']' if column == 'shape' else ' '.join(map(str, value))
    return str(value)


class Monitor:
    """Samples of the process's memory and of the buffers. sample() takes one; text() and html() show the last."""

    def __init__(self, tool=None):
        self.tool = tool or shutil.which('tensorstat')
        self.history = []  # (time, bytes in tensors, bytes kept for reuse)
        self.rows, self.problem = [], None

    def sample(self):
        stats = _C.cache_stats()
        self.stats = stats
        now = (time.time(), stats['used'] + stats['blocks'], stats['cached'])
        self.history = self.history[1 - HISTORY:] + [now]
        self.rows = self._buffers()
        return self

    def _buffers(self):
        if not self.tool:
            self.problem = 'tensorstat is not installed: no list of buffers'
            return []
        try:
            out = subprocess.run([self.tool, '-j', 'buffer', 'show'], capture_output=True, timeout=10,
                                 check=True).stdout
            rows = json.loads(out or b'[]')
        except (OSError, ValueError, subprocess.SubprocessError) as e:
            self.problem = f'{self.tool}: {e}'
            return []
        self.problem = None
        return [{k.lower(): v for k, v in row.items()} for row in rows if isinstance(row, dict)]

    @property
    def columns(self):
        return [c for c in COLUMNS if any(row.get(c) not in (None, '') for row in self.rows)]

    def summary(self):
        s = self.stats
        return (f'{_C.provider_name()}: {s["tensors"]} tensors, {bytes_text(s["used"] + s["blocks"])} used, '
                f'{bytes_text(s["cached"])} kept for reuse, {len(self.rows)} buffers of all processes')

    def sparkline(self):
        values = [used for _, used, _ in self.history]
        most = max(values, default=0) or 1
        return ''.join(BARS[round(v / most * (len(BARS) - 1))] for v in values)

    def text(self, width=None, height=None):
        """The table as lines of at most width characters."""
        columns = self.columns
        cells = [[c.upper() for c in columns]] + [[text_of(c, row.get(c)) for c in columns] for row in self.rows]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines = [self.summary(), self.sparkline()]
        lines += ['  '.join(cell.ljust(w) for cell, w in zip(row, widths)).rstrip() for row in cells if columns]
        if self.problem:
            lines.append(self.problem)
        if height and len(lines) > height:
            lines = lines[:height - 1] + [f'... {len(lines) - height + 1} more']
        return '\n'.join(line[:width] for line in lines)

    def svg(self, width=480, height=80):
        """The history of the bytes in tensors as a line."""
        values = [used for _, used, _ in self.history]
        most = max(values, default=0) or 1
        step = width / max(len(values) - 1, 1)
        points = ' '.join(f'{i * step:.1f},{height - 2 - (height - 4) * v / most:.1f}' for i, v in enumerate(values))
        return (f'<svg width="{width}" height="{height}" role="img" aria-label="bytes in tensors">'
                f'<polyline points="{points}" fill="none" stroke="currentColor" stroke-width="1.5"/></svg>')

    def html(self):
        columns = self.columns
        head = ''.join(f'<th>{html.escape(c)}</th>' for c in columns)
        body = ''.join('<tr>' + ''.join(f'<td>{html.escape(text_of(c, row.get(c)))}</td>' for c in columns) + '</tr>'
                       for row in self.rows)
        note = f'<p>{html.escape(self.problem)}</p>' if self.problem else ''
        return f'<div><p>{html.escape(self.summary())}</p>{self.svg()}<table><tr>{head}</tr>{body}</table>{note}</div>'

    def _repr_html_(self):
        return self.html()


def _in_notebook():
    shell = sys.modules.get('IPython') and sys.modules['IPython'].get_ipython()
    return bool(shell) and shell.__class__.__name__ == 'ZMQInteractiveShell'


def _show_in_notebook(m):
    from IPython.display import display
    handle = display(m, display_id=True)
    return lambda: handle.update(m)


def _show_in_terminal(m, file):
    # The alternate screen, so that the table leaves no trace in the terminal's history.
    file.write('\x1b[?1049h\x1b[?25l')

    def update():
        size = shutil.get_terminal_size()
        file.write('\x1b[H\x1b[2J' + m.text(size.columns, size.lines).replace('\n', '\r\n'))
        file.flush()
    update()
    return update


def monitor(interval=1.0, duration=None, file=None):
    """Shows the buffers and the history of the process's memory, anew every interval seconds, for duration seconds or
    until it is interrupted. In a notebook the cell's output is updated; in a terminal the screen; otherwise a table is
    written to file (standard output) for each sample. Returns the Monitor with its history."""
    if not interval > 0:
        raise ValueError('monitor: interval must be positive')
    file = file or sys.stdout
    if file is None:
        raise ValueError('monitor: there is no standard output')
    m = Monitor().sample()
    notebook = _in_notebook()
    terminal = not notebook and file.isatty() and os.environ.get('TERM') != 'dumb'
    if notebook:
        update = _show_in_notebook(m)
    elif terminal:
        update = _show_in_terminal(m, file)
    else:
        def update():
            print(m.text(), file=file, flush=True)
        update()
    end = None if duration is None else time.monotonic() + duration
    try:
        while end is None or time.monotonic() + interval <= end:
            time.sleep(interval)
            m.sample()
            update()
    except KeyboardInterrupt:
        pass
    finally:
        if terminal:
            file.write('\x1b[?25h\x1b[?1049l')
            file.flush()
    return m
