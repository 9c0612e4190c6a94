# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""ONNX's operators: shapes, indices, creation of tensors."""
import golden
import onnx_proto
from onnx_ops import Missing, axes_of, dims, number, onnx, values

# ---- shapes --------------------------------------------------------------------------------------

@onnx('Concat')
def concat(o, x, a):
    return o('cat', x, a['axis'])


@onnx('Split')
def split(o, x, a):
    axis = a.get('axis', 0)
    sizes = values(x[1]) if len(x) > 1 else a.get('split')
    if not sizes:
        n = x[0].sizes[axis]
        each = -(-n // o.wanted)
        sizes = [min(each, n - i * each) for i in range(o.wanted)]
    return o('split_with_sizes', x[0], sizes, axis)


@onnx('Slice')
def slice_(o, x, a):
    t = x[0]
    if o.opset < 10:
        starts, ends, axes, steps = a['starts'], a['ends'], a.get('axes'), None
    else:
        starts, ends = values(x[1]), values(x[2])
        axes = values(x[3]) if len(x) > 3 and x[3] else None
        steps = values(x[4]) if len(x) > 4 and x[4] else None
    for i, s in enumerate(starts):
        axis = dims(t, axes[i] if axes else i)
        n, step = t.sizes[axis], steps[i] if steps else 1
        first, last, step = slice(s, ends[i], step).indices(n)
        if step < 0:  # the same elements in reverse order
            t = o('flip', t, [axis])
            first, last, step = n - 1 - first, n - 1 - last, -step
        t = o('slice.Tensor', t, axis, first, max(first, last), step)
    return t


@onnx('Squeeze')
def squeeze(o, x, a):
    axes = axes_of(x, a)
    if not axes:
        return o('squeeze', x[0])
    t = x[0]
    for i in sorted((dims(t, i) for i in axes), reverse=True):
        t = o('squeeze.dim', t, i)
    return t


@onnx('Unsqueeze')
def unsqueeze(o, x, a):
    axes, t = axes_of(x, a), x[0]
    n = len(t.sizes) + len(axes)
    for i in sorted(i % n for i in axes):
        t = o('unsqueeze', t, i)
    return t


@onnx('Transpose')
def transpose(o, x, a):
    return o('permute', x[0], a.get('perm') or list(range(len(x[0].sizes)))[::-1])


@onnx('Reshape')
def reshape(o, x, a):
    shape = values(x[1]) if len(x) > 1 else a['shape']
    if not a.get('allowzero'):
        shape = [x[0].sizes[i] if n == 0 else n for i, n in enumerate(shape)]
    return o('reshape', x[0], shape)


@onnx('Flatten')
def flatten(o, x, a):
    head, t = 1, x[0]
    for n in t.sizes[:dims(t, a.get('axis', 1))]:
        head *= n
    tail = 1
    for n in t.sizes[dims(t, a.get('axis', 1)):]:
        tail *= n
    return o('reshape', t, [head, tail])


@onnx('Expand')
def expand(o, x, a):
    t, shape = x[0], values(x[1])
    n = max(len(shape), len(t.sizes))
    mine, theirs = [1] * (n - len(t.sizes)) + t.sizes, [1] * (n - len(shape)) + shape
    return o('expand', t, [max(p, q) for p, q in zip(mine, theirs)])


@onnx('Tile')
def tile(o, x, a):
    return o('repeat', x[0], values(x[1]))


@onnx('Shape')
def shape(o, x, a):
    sizes = x[0].sizes[slice(a.get('start'), a.get('end'))]
    return o.new('i64', sizes, [len(sizes)])


@onnx('Size')
def size(o, x, a):
    return o.new('i64', [x[0].numel], [])


@onnx('Trilu')
def trilu(o, x, a):
    return o('triu' if a.get('upper', 1) else 'tril', x[0], int(number(x[1])) if len(x) > 1 else 0)


@onnx('DepthToSpace')
def depth_to_space(o, x, a):
    n, c, h, w = x[0].sizes
    b = a['blocksize']
    if a.get('mode', 'DCR') == 'CRD':
        return o('pixel_shuffle', x[0], b)
    t = o('permute', o('reshape', x[0], [n, b, b, c // b // b, h, w]), [0, 3, 4, 1, 5, 2])
    return o('reshape', t, [n, c // b // b, h * b, w * b])


@onnx('SpaceToDepth')
def space_to_depth(o, x, a):
    n, c, h, w = x[0].sizes
    b = a['blocksize']
    t = o('permute', o('reshape', x[0], [n, c, h // b, b, w // b, b]), [0, 3, 5, 1, 2, 4])
    return o('reshape', t, [n, c * b * b, h // b, w // b])


@onnx('Pad')
def pad(o, x, a):
    pads = values(x[1]) if len(x) > 1 else a['pads']
    n, mode, flat = len(x[0].sizes), a.get('mode', 'constant'), []
    if len(x) > 3:
        raise Missing('Pad with axes')
    for i in reversed(range(n)):
        flat += [pads[i], pads[i + n]]
    if mode == 'constant':
        value = number(x[2]) if len(x) > 2 and x[2] else a.get('value', 0)
        return o('constant_pad_nd', x[0], flat, value)
    if any(flat[2 * (n - 2):]):
        raise Missing('Pad of the leading dimensions by reflection')
    ours = {'reflect': 'reflection_pad', 'edge': 'replication_pad'}.get(mode)
    if not ours:
        raise Missing(f'Pad {mode}')
    return o(f'{ours}{n - 2}d', x[0], flat[:2 * (n - 2)])


# ---- indices -------------------------------------------------------------------------------------

def positive(o, index, n):
    """Negative indices count from the end."""
    return o('where.self', o('lt.Scalar', index, 0), o('add.Scalar', index, n), index)


def whole(o, index):
    return index if index.dtype == 'i64' else o('_to_copy', index, dtype='i64')


@onnx('Gather')
def gather(o, x, a):
    t, axis = x[0], dims(x[0], a.get('axis', 0))
    index = positive(o, whole(o, x[1]), t.sizes[axis])
    flat = o('index_select', t, axis, o('reshape', index, [-1]))
    return o('reshape', flat, t.sizes[:axis] + index.sizes + t.sizes[axis + 1:])


@onnx('GatherElements')
def gather_elements(o, x, a):
    axis = dims(x[0], a.get('axis', 0))
    return o('gather', x[0], axis, positive(o, whole(o, x[1]), x[0].sizes[axis]))


@onnx('GatherND')
def gather_nd(o, x, a):
    if a.get('batch_dims'):
        raise Missing('GatherND with batch dimensions')
    index = [o('select.int', whole(o, x[1]), -1, i) for i in range(x[1].sizes[-1])]
    return o('index.Tensor', x[0], index)


@onnx('ScatterElements', 'Scatter')
def scatter(o, x, a):
    axis, reduce = dims(x[0], a.get('axis', 0)), a.get('reduction', 'none')
    index = positive(o, whole(o, x[1]), x[0].sizes[axis])
    if reduce == 'none':
        return o('scatter.src', x[0], axis, index, x[2])
    ours = dict(add='sum', mul='prod', max='amax', min='amin')[reduce]
    return o('scatter_reduce.two', x[0], axis, index, x[2], ours)


@onnx('ScatterND')
def scatter_nd(o, x, a):
    reduce = a.get('reduction', 'none')
    if reduce not in ('none', 'add'):
        raise Missing(f'ScatterND {reduce}')
    index = [o('select.int', whole(o, x[1]), -1, i) for i in range(x[1].sizes[-1])]
    return o('index_put', x[0], index, x[2], reduce == 'add')


@onnx('NonZero')
def nonzero(o, x, a):
    return o('t', o('nonzero', x[0]))


@onnx('Compress')
def compress(o, x, a):
    t, axis = x[0], a.get('axis')
    if axis is None:
        t, axis = o('reshape', t, [-1]), 0
    where_ = o('reshape', o('nonzero', x[1]), [-1])
    return o('index_select', t, dims(t, axis), where_)


@onnx('OneHot')
def one_hot(o, x, a):
    axis, depth = a.get('axis', -1), int(number(x[1]))
    index = positive(o, whole(o, x[0]), depth)
    axis = axis % (len(index.sizes) + 1)
    rng = o('reshape', o('arange', depth, dtype='i64'),
            [depth] + [1] * (len(index.sizes) - axis))
    hot = o('eq.Tensor', o('unsqueeze', index, axis), rng)
    off, on = (o('select.int', x[2], 0, i) for i in (0, 1))
    return o('where.self', hot, on, off)


# ---- creation -----------------------------------------------------------------------------------

@onnx('Constant')
def constant(o, x, a):
    (key, v), = a.items()
    if key == 'value':
        return o.lib.storage(v[0], v[2], sizes=v[1])
    if key in ('value_float', 'value_floats', 'value_int', 'value_ints'):
        dtype = 'f32' if 'float' in key else 'i64'
        return o.new(dtype, v, [len(v)]) if key.endswith('s') else o.new(dtype, [v], [])
    raise Missing(f'Constant {key}')


@onnx('ConstantOfShape')
def constant_of_shape(o, x, a):
    dtype, _, raw = a.get('value', ('f32', [1], bytes(4)))
    return o('full', values(x[0]), golden.numbers(raw, dtype)[0], dtype=dtype)


@onnx('Range')
def range_(o, x, a):
    return o('arange.start_step', *(number(t) for t in x), dtype=x[0].dtype)


@onnx('EyeLike')
def eye_like(o, x, a):
    n, m = x[0].sizes
    k = a.get('k', 0)
    dtype = onnx_proto.DTYPES.get(a['dtype'], '') if 'dtype' in a else x[0].dtype
    if k:
        ones = o('ones', [n, m], dtype=dtype)
        return o('tril', o('triu', ones, k), k)
    return o('eye.m', n, m, dtype=dtype)


@onnx('Cast')
def cast(o, x, a):
    if a['to'] not in onnx_proto.DTYPES:
        raise onnx_proto.Foreign(f'ONNX data type {a["to"]}')
    return o('_to_copy', x[0], dtype=onnx_proto.DTYPES[a['to']])


@onnx('CastLike')
def cast_like(o, x, a):
    return o('_to_copy', x[0], dtype=x[1].dtype)


@onnx('Dropout')
def dropout(o, x, a):
    if len(x) > 2 and x[2] and number(x[2]) and (not x[1] or number(x[1])):
        raise Missing('random numbers of a given seed')
    return [x[0], o('ones_like', x[0], dtype='bool')]
