# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The monitor of buffers."""
import io
import os
import stat

import pytest

import devtensor as dt
from devtensor._monitor import Monitor, bytes_text
from memory import skip_with_sanitizer

ROWS = '[{"ID": 7, "NAME": "<b>", "DTYPE": "f32", "SHAPE": [2, 3], "SIZE": 4096, "OWNER": {"pid": 1, "comm": "x"}}]'


def tool(tmp_path, text, status=0):
    path = tmp_path / 'tensorstat'
    path.write_text(f"#!/bin/sh\ncat <<'EOT'\n{text}\nEOT\nexit {status}\n")
    os.chmod(path, stat.S_IRWXU)
    return str(path)


def test_rows_are_those_of_the_tool(tmp_path):
    m = Monitor(tool(tmp_path, ROWS)).sample()
    assert m.columns == ['id', 'name', 'dtype', 'shape', 'size', 'owner']
    assert '4.0 KiB' in m.text() and '[2, 3]' in m.text() and '1 buffers' in m.text()
    assert '&lt;b&gt;' in m.html() and '<b>' not in m.html() and '<polyline' in m._repr_html_()
    assert len(m.text(width=20, height=3).splitlines()) == 3


@pytest.mark.parametrize('text, status', [('no json', 0), ('', 3), ('[1, "x"]', 0), ('{}', 0)])
def test_a_broken_tool_is_reported(tmp_path, text, status):
    m = Monitor(tool(tmp_path, text, status)).sample()
    assert m.rows == [] and 'tensors' in m.text()


def test_the_history_follows_the_memory():
    skip_with_sanitizer()   # a storage is an allocation there, not a buffer
    m = Monitor().sample()
    x = dt.zeros(1 << 20)
    m.sample()
    assert m.history[1][1] >= m.history[0][1] + 4 * x.numel()
    for _ in range(100):
        m.sample()
    assert len(m.history) == 60 == len(m.sparkline())


def test_a_file_gets_a_table_for_each_sample():
    out = io.StringIO()
    m = dt.monitor(interval=0.02, duration=0.07, file=out)
    assert 2 <= len(m.history) <= 4 and out.getvalue().count(' tensors, ') == len(m.history)
    with pytest.raises(ValueError):
        dt.monitor(interval=0)


def test_bytes_are_shown_with_units():
    assert [bytes_text(n) for n in (0, 1023, 1536, 5 << 30)] == ['0 B', '1023 B', '1.5 KiB', '5.0 GiB']


def test_without_standard_output_the_monitor_is_refused(monkeypatch):
    import sys
    monkeypatch.setattr(sys, 'stdout', None)
    with pytest.raises(ValueError, match='standard output'):
        dt.monitor(0.1, 0.1)
