# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Tensors as text, in PyTorch's form, and as HTML for notebooks."""
import html
import math
import textwrap

from devtensor import _C
from devtensor._tensor import without_history

_DEFAULTS = {'precision': 4, 'threshold': 1000, 'edgeitems': 3, 'linewidth': 80, 'sci_mode': None}
_PROFILES = {
    'default': _DEFAULTS,
    'short': {**_DEFAULTS, 'precision': 2, 'edgeitems': 2},
    'full': {**_DEFAULTS, 'threshold': math.inf},
}
_options = dict(_DEFAULTS)

# The dtypes of literals, which the text does not name.
_UNNAMED = (_C.float32, _C.complex64, _C.int64, _C.bool)


def set_printoptions(precision=None, threshold=None, edgeitems=None, linewidth=None, profile=None, sci_mode=None):
    """Set how tensors are printed.

    precision: digits after the point. threshold: tensors with more elements are shortened to the first and last
    edgeitems of each dimension. linewidth: characters of a line. profile: "default", "short" or "full". sci_mode: True
    or False for scientific notation always or never, None to choose it by the values. ValueError for another profile or
    a negative number.
    """
    changed = dict(_options)
    if profile is not None:
        if profile not in _PROFILES:
            raise ValueError(f'set_printoptions: there is no profile {profile!r}')
        changed.update(_PROFILES[profile])
    for name, value in (('precision', precision), ('threshold', threshold), ('edgeitems', edgeitems),
                        ('linewidth', linewidth)):
        if value is None:
            continue
        if value != math.inf:
            value = value.__index__()
        if value < 0:
            raise ValueError(f'set_printoptions: {name} is {value}')
        changed[name] = value
    changed['sci_mode'] = sci_mode
    _options.update(changed)


def get_printoptions():
    """The options of set_printoptions() as a dict."""
    return dict(_options)


class _Format:
    """The format that all numbers of a tensor share: integers, whole floats (1.), fixed (1.5000) or scientific."""

    def __init__(self, values, floating):
        self.floating, self.whole, self.scientific, self.width = floating, True, False, 1
        if not floating:
            self.width = max((len(str(v)) for v in values), default=1)
            return
        finite = [v for v in values if math.isfinite(v) and v != 0]
        if finite:
            self._choose(finite)

    def _choose(self, finite):
        low, high = min(map(abs, finite)), max(map(abs, finite))
        self.whole = all(v == math.floor(v) for v in finite)
        self.scientific = high > 1e8 or high / low > 1000 or (not self.whole and low < 1e-4)
        if _options['sci_mode'] is not None:
            self.scientific = bool(_options['sci_mode'])
        self.width = max(len(self.number(v)) for v in finite)

    def number(self, value):
        """The number without padding."""
        if not self.floating:
            return str(value)
        if self.scientific:
            return f'{value:.{_options["precision"]}e}'
        if self.whole:
            return f'{value:.0f}' + ('.' if math.isfinite(value) else '')
        return f'{value:.{_options["precision"]}f}'

    def __call__(self, value):
        return self.number(value).rjust(self.width)


class _ComplexFormat:
    """The real and the imaginary parts have a format each."""

    def __init__(self, values):
        self.real = _Format([v.real for v in values], True)
        self.imag = _Format([v.imag for v in values], True)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value):
        imag = self.imag(value.imag).lstrip() + 'j'
        return self.real(value.real) + ('' if imag[0] in '+-' else '+') + imag


def _leaves(data, ndim):
    """The numbers of nested lists, without the marks of omitted elements."""
    if ndim == 0:
        return [data]
    return [v for part in data if part is not None for v in _leaves(part, ndim - 1)]


def _shown(tensor, summarise):
    """The shown elements in nested lists; None stands for omitted ones."""
    edge = _options['edgeitems']
    if not summarise or tensor.ndim == 0:
        return tensor.tolist()
    n = tensor.shape[0]
    if n <= 2 * edge:
        return [_shown(tensor[i], summarise) for i in range(n)]
    first = [_shown(tensor[i], summarise) for i in range(edge)]
    return first + [None] + [_shown(tensor[i], summarise) for i in range(n - edge, n)]


def _row(data, form, indent):
    per_line = max(1, (_options['linewidth'] - indent) // (form.width + 2))
    words = [' ...' if v is None else form(v) for v in data]
    lines = [', '.join(words[i:i + per_line]) for i in range(0, len(words), per_line)]
    return '[' + (',\n' + ' ' * (indent + 1)).join(lines) + ']'


def _nested(data, ndim, form, indent):
    if ndim == 0:
        return form(data)
    if ndim == 1:
        return _row(data, form, indent)
    parts = ['...' if part is None else _nested(part, ndim - 1, form, indent + 1) for part in data]
    return '[' + (',' + '\n' * (ndim - 1) + ' ' * (indent + 1)).join(parts) + ']'


def _numbers(tensor, indent):
    if tensor.numel() == 0:
        return '[]'
    data = _shown(tensor, tensor.numel() > _options['threshold'])
    values = _leaves(data, tensor.ndim)
    if tensor.dtype.is_complex:
        form = _ComplexFormat(values)
    else:
        form = _Format(values, tensor.dtype.is_floating_point)
    return _nested(data, tensor.ndim, form, indent)


def _dtype_name(dtype):
    return str(dtype).rsplit('.', 1)[-1]


def _history(tensor):
    """requires_grad=True of a leaf, or the name of the node that computed the tensor."""
    if not tensor.requires_grad:
        return []
    if tensor.is_leaf:
        return ['requires_grad=True']
    text = tensor._format()
    start = text.rfind('grad_fn=<')
    return [text[start:text.index('>', start) + 1]] if start >= 0 else ['requires_grad=True']


def _joined(text, suffixes, indent, newline):
    """tensor(..., suffix, suffix): a suffix that does not fit begins a line."""
    out, column = text, len(text) - text.rfind('\n') + 1
    for suffix in suffixes:
        if newline or column + len(suffix) + 2 > _options['linewidth']:
            out += ',\n' + ' ' * indent + suffix
            column, newline = indent + len(suffix), False
        else:
            out += ', ' + suffix
            column += len(suffix) + 2
    return out + ')'


def _device(tensor):
    return [] if tensor.device == 'cpu' else [f"device='{tensor.device}'"]


def _strided(tensor, prefix):
    suffixes = _device(tensor)
    if tensor.numel() == 0 and tensor.ndim != 1:
        suffixes.append(f'size={tensor.shape}')
    if tensor.dtype not in _UNNAMED or (tensor.numel() == 0 and tensor.dtype is not _C.float32):
        suffixes.append(f'dtype={_dtype_name(tensor.dtype)}')
    return _joined(prefix + _numbers(tensor.detach(), len(prefix)), suffixes + _history(tensor), len(prefix), False)


def _sparse(tensor, prefix):
    data = without_history(tensor)
    if tensor.layout is _C.sparse_coo:
        values, parts = data._values(), {'indices': data._indices()}
    else:
        values, parts = data.values(), {'crow_indices': data.crow_indices(), 'col_indices': data.col_indices()}
    text = ''
    for name, part in {**parts, 'values': values}.items():
        start = f'{name}=tensor('
        if text:
            text += ',\n' + ' ' * len(prefix)
        text += start + _numbers(part, len(prefix) + len(start))
        text += (f', size={part.shape})' if part.numel() == 0 else ')')
    suffixes = _device(tensor) + [f'size={tensor.shape}', f'nnz={values.shape[0]}']
    if tensor.dtype not in _UNNAMED:
        suffixes.append(f'dtype={_dtype_name(tensor.dtype)}')
    suffixes.append(f'layout={_dtype_name(tensor.layout)}')
    return _joined(prefix + text, suffixes + _history(tensor), len(prefix), True)


def _quantized(tensor, prefix):
    suffixes = _device(tensor) + [f'size={tensor.shape}', f'dtype={_dtype_name(tensor.dtype)}']
    if tensor.qscheme() == 'per_tensor_affine':
        suffixes += ['quantization_scheme=per_tensor_affine', f'scale={tensor.q_scale()}',
                     f'zero_point={tensor.q_zero_point()}']
    else:
        suffixes += ['quantization_scheme=per_channel_affine', f'scale={tensor.q_per_channel_scales()!r}',
                     f'zero_point={tensor.q_per_channel_zero_points()!r}', f'axis={tensor.q_per_channel_axis()}']
    return _joined(prefix + _numbers(tensor.dequantize(), len(prefix)), suffixes, len(prefix), False)


def tensor_repr(self):
    """The elements and what distinguishes the tensor from others, in PyTorch's form; dtypes without a module."""
    prefix = ('tensor' if type(self) is _C.Tensor else type(self).__name__) + '('
    plain = self if type(self) is _C.Tensor else self.as_subclass(_C.Tensor)
    if plain.layout in (_C.sparse_coo, _C.sparse_csr):
        return _sparse(plain, prefix)
    if plain.is_quantized:
        return _quantized(plain, prefix)
    if plain.layout is not _C.strided:
        return prefix + plain._format().split('(', 1)[1]
    return _strided(plain, prefix)


def tensor_format(self, spec):
    """format(x, spec): of the number for a tensor without dimensions, else of its text."""
    if self.ndim == 0 and self.layout is _C.strided:
        return format(self.item(), spec)
    return format(str(self), spec)


# ---- HTML ----

_ROWS, _COLUMNS, _EDGE = 60, 20, 5


def _positions(n, most):
    """The shown positions of a dimension; None stands for omitted ones."""
    if n <= most:
        return list(range(n))
    return [*range(_EDGE), None, *range(n - _EDGE, n)]


def _bytes(n):
    units = ('bytes', 'KiB', 'MiB', 'GiB', 'TiB')
    size, k = float(n), 0
    while size >= 1024 and k < len(units) - 1:
        size, k = size / 1024, k + 1
    return f'{n} bytes' if k == 0 else f'{size:.1f} {units[k]}'


def _cells(tensor):
    """The header and the rows of the table, as text. tensor has one or two dimensions."""
    matrix = tensor.detach().as_subclass(_C.Tensor)
    matrix = matrix[None] if matrix.ndim == 1 else matrix
    rows, columns = _positions(matrix.shape[0], _ROWS), _positions(matrix.shape[1], _COLUMNS)
    data = [None if r is None else [None if c is None else matrix[r, c].tolist() for c in columns] for r in rows]
    values = _leaves(data, 2)
    values = [v for v in values if v is not None]
    form = (_ComplexFormat(values) if tensor.dtype.is_complex else _Format(values, tensor.dtype.is_floating_point))
    texts = [['⋮'] * len(columns) if row is None else ['⋯' if v is None else form(v).strip() for v in row]
             for row in data]
    header = ['⋯' if c is None else str(c) for c in columns]
    names = ['⋮' if r is None else str(r) for r in rows]
    return header, names if tensor.ndim == 2 else [''] * len(names), texts


def tensor_html(self):
    """A table for a notebook, with at most 60 rows and 20 columns. Other than one or two dimensions: the text."""
    if self.layout is not _C.strided or self.is_quantized or self.ndim not in (1, 2) or self.numel() == 0:
        return f'<pre>{html.escape(repr(self))}</pre>'
    header, names, texts = _cells(self)
    caption = f'{type(self).__name__} {self.shape}, {_dtype_name(self.dtype)}, {self.device}, {_bytes(self.nbytes)}'
    cell = '<td style="text-align: right">{}</td>'.format
    body = ''.join(f'<tr><th>{html.escape(name)}</th>{"".join(cell(html.escape(t)) for t in row)}</tr>\n'
                   for name, row in zip(names, texts))
    head = ''.join(f'<th>{html.escape(h)}</th>' for h in header)
    return textwrap.dedent(f'''\
        <table>
        <caption>{html.escape(caption)}</caption>
        <thead><tr><th></th>{head}</tr></thead>
        <tbody>
        ''') + body + '</tbody>\n</table>'


_C.Tensor.__repr__ = tensor_repr
_C.Tensor.__format__ = tensor_format
_C.Tensor._repr_html_ = tensor_html
