# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors as text and HTML. The expected texts are PyTorch's, without the module before dtypes."""
import html.parser

import pytest

import devtensor as dt


@pytest.fixture(autouse=True)
def default_options():
    dt.set_printoptions(profile='default')
    yield
    dt.set_printoptions(profile='default')


@pytest.mark.parametrize('tensor, text', [
    (lambda: dt.tensor([[1., 2.], [3., 4.]], dtype=dt.float64, requires_grad=True),
     'tensor([[1., 2.],\n        [3., 4.]], dtype=float64, requires_grad=True)'),
    (lambda: dt.tensor([1.5, -2, 1000]), 'tensor([   1.5000,   -2.0000, 1000.0000])'),
    (lambda: dt.tensor([1e-9, 1, 1e9]), 'tensor([1.0000e-09, 1.0000e+00, 1.0000e+09])'),
    (lambda: dt.tensor([2e8, 3e8]), 'tensor([2.0000e+08, 3.0000e+08])'),
    (lambda: dt.tensor([1e-5, 0]), 'tensor([1.0000e-05, 0.0000e+00])'),
    (lambda: dt.tensor([float('nan'), 1, float('inf')]), 'tensor([nan, 1., inf])'),
    (lambda: dt.tensor([0.1, float('-inf')]), 'tensor([0.1000,   -inf])'),
    (lambda: dt.tensor([10, -200, 3]), 'tensor([  10, -200,    3])'),
    (lambda: dt.tensor([True, False]), 'tensor([ True, False])'),
    (lambda: dt.tensor(3.5), 'tensor(3.5000)'),
    (lambda: dt.tensor(3.0), 'tensor(3.)'),
    (lambda: dt.tensor(3), 'tensor(3)'),
    (lambda: dt.tensor([]), 'tensor([])'),
    (lambda: dt.zeros(0, 3), 'tensor([], size=(0, 3))'),
    (lambda: dt.zeros(2, 0, dtype=dt.int64), 'tensor([], size=(2, 0), dtype=int64)'),
    (lambda: dt.zeros(0, dtype=dt.bool), 'tensor([], dtype=bool)'),
    (lambda: dt.tensor([1, 2], dtype=dt.uint8), 'tensor([1, 2], dtype=uint8)'),
    (lambda: dt.tensor([2**64 - 1], dtype=dt.uint64), 'tensor([18446744073709551615], dtype=uint64)'),
    (lambda: dt.tensor([1.5, 2]).to(dt.bfloat16), 'tensor([1.5000, 2.0000], dtype=bfloat16)'),
    (lambda: dt.tensor([1 + 2j, 3 - 4.5j]), 'tensor([1.+2.0000j, 3.-4.5000j])'),
    (lambda: dt.arange(2000), 'tensor([   0,    1,    2,  ..., 1997, 1998, 1999])'),
    (lambda: dt.ones(2, requires_grad=True) * 2, 'tensor([2., 2.], grad_fn=<MulScalarBackward>)'),
    (lambda: dt.ones(2, 2, 1), 'tensor([[[1.],\n         [1.]],\n\n        [[1.],\n         [1.]]])'),
    (lambda: dt.tensor([[0., 1.], [2., 0.]]).to_sparse(),
     'tensor(indices=tensor([[0, 1],\n                       [1, 0]]),\n       values=tensor([1., 2.]),\n'
     '       size=(2, 2), nnz=2, layout=sparse_coo)'),
    (lambda: dt.tensor([[0., 1.], [2., 0.]]).to_sparse_csr(),
     'tensor(crow_indices=tensor([0, 1, 2]),\n       col_indices=tensor([1, 0]),\n       values=tensor([1., 2.]),\n'
     '       size=(2, 2), nnz=2, layout=sparse_csr)'),
    (lambda: dt.quantize_per_tensor(dt.tensor([1., 2.]), 0.5, 3, dt.uint8),
     'tensor([1., 2.], size=(2,), dtype=uint8, quantization_scheme=per_tensor_affine,\n'
     '       scale=0.5, zero_point=3)'),
])
def test_text(tensor, text):
    assert repr(tensor()) == str(tensor()) == text


def test_long_tensors_are_shortened_in_each_dimension():
    text = repr(dt.arange(20000).reshape(100, 200))
    assert text.count('...') == 7 and len(text.splitlines()) == 7
    assert text.startswith('tensor([[    0,     1,     2,  ...,   197,   198,   199],\n')
    dt.set_printoptions(threshold=10, edgeitems=1)
    assert repr(dt.arange(11)) == 'tensor([ 0,  ..., 10])'


def test_lines_are_as_wide_as_the_options_say():
    dt.set_printoptions(linewidth=40)
    assert max(map(len, repr(dt.arange(100)).splitlines())) <= 40
    dt.set_printoptions(linewidth=200)
    assert len(repr(dt.arange(30)).splitlines()) == 1


def test_precision_and_scientific_notation_are_options():
    dt.set_printoptions(precision=2)
    assert repr(dt.tensor(1.0 / 3)) == 'tensor(0.33)' and dt.get_printoptions()['precision'] == 2
    dt.set_printoptions(sci_mode=True)
    assert repr(dt.tensor([1.0])) == 'tensor([1.00e+00])'
    dt.set_printoptions(sci_mode=False, precision=3)
    assert repr(dt.tensor([1e-9, 1.0])) == 'tensor([0.000, 1.000])'
    dt.set_printoptions(profile='full')
    assert '...' not in repr(dt.arange(2000))


@pytest.mark.parametrize('options', [{'precision': -1}, {'profile': 'none'}, {'linewidth': 'a'}, {'threshold': 1.5}])
def test_wrong_options_are_refused_and_change_nothing(options):
    before = dt.get_printoptions()
    with pytest.raises((ValueError, TypeError, AttributeError)):
        dt.set_printoptions(**options)
    assert dt.get_printoptions() == before


def test_format_is_that_of_the_number():
    assert f'{dt.tensor(3.14159):.2f}' == '3.14' and f'{dt.tensor(7):04d}' == '0007' and f'{dt.tensor(1.5)}' == '1.5'
    x = dt.tensor([1., 2.])
    assert f'{x}' == str(x) and f'{x:>30}' == str(x).rjust(30)
    with pytest.raises(ValueError):
        f'{x:.2f}'


class Cells(html.parser.HTMLParser):
    """The texts of the cells and the depth of open tags."""

    def __init__(self, text):
        super().__init__()
        self.texts, self.open = [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append((self.open[-1] if self.open else '', data))


def cells(x):
    parser = Cells(x._repr_html_())
    assert not parser.open
    return parser.texts


def test_html_is_a_table_with_a_caption():
    texts = cells(dt.tensor([[1., 2.], [3., 4.]]))
    assert ('caption', 'Tensor (2, 2), float32, cpu, 16 bytes') in texts
    assert [t for tag, t in texts if tag == 'td'] == ['1.', '2.', '3.', '4.']
    assert [t for tag, t in cells(dt.tensor([1, 2 ** 40])) if tag == 'td'] == ['1', str(2 ** 40)]


def test_html_is_shortened():
    texts = cells(dt.zeros(100000, 1000))
    assert len(texts) < 1000 and ('td', '⋮') in texts and ('td', '⋯') in texts
    assert any('381.5 MiB' in t for _, t in texts)


def test_html_is_escaped():
    class Odd(dt.Tensor):
        pass
    Odd.__name__ = '<script>'
    for x in (Odd([1.]), Odd([[[1.]]]), Odd(2.), dt.tensor([[0., 1.]]).to_sparse()):
        text = x._repr_html_()
        assert '<script>' not in text and (text.startswith('<table>') or text.startswith('<pre>'))
        cells(x)
    assert '&lt;MulScalarBackward&gt;' in (dt.ones(1, 1, 1, requires_grad=True) * 2)._repr_html_()
