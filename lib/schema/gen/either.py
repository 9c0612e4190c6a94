# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""One name for a tensor or a number, at the end of tensor/ops.h: in C a macro that chooses by the type of an argument, in
C++ overloads. The macro has the name of a function and takes arguments, so that &tensor_add stays the function.

    #define tensor_add(self, ...) \\
            TENSOR_EITHER_((__VA_ARGS__), tensor_add, tensor_add_scalar)(self, TENSOR_OPERAND_(__VA_ARGS__))
"""
NUMBERS = ('Scalar', 'float')

PREAMBLE = r"""/* ---- one name for a tensor or a number ---- */

#ifndef __cplusplus
static inline tensor *tensor_operand_tensor(tensor *t)
{
	return t;
}

/* A tensor as it is, a number as a tensor_scalar of its kind. */
#define TENSOR_OPERAND_(...) \
	_Generic((__VA_ARGS__), tensor *: tensor_operand_tensor, const tensor *: tensor_operand_tensor, \
		 void *: tensor_operand_tensor, TENSOR_SCALAR_TYPES_)(__VA_ARGS__)
/* A function by the type of an argument; NULL, which a failed operator returned, counts as a tensor. */
#define TENSOR_EITHER_(x, for_tensor, for_number) \
	_Generic(x, tensor *: for_tensor, const tensor *: for_tensor, void *: for_tensor, default: for_number)

"""


class Form:
    """A C function: an Op with all of its arguments, or with the short list."""

    def __init__(self, op, full):
        self.op = op
        self.name = op.c_name_full if full else op.c_name
        hidden = set() if full else {a.name for a in op.hidden}
        self.args = [(d, n, a.type if a else 'options') for d, n, a in op.c_args() if n not in hidden]
        self.args += [(d, n, 'result') for d, n in op.c_results()]
        self.types = [t for _, _, t in self.args]

    def key(self):
        """The same for forms that differ in tensors and numbers only."""
        return (self.op.base, self.op.variant, self.op.ctype,
                tuple('either' if t in NUMBERS + ('Tensor',) else t for t in self.types))


class Group:
    def __init__(self, forms, taken):
        self.forms = forms
        self.varying = [i for i in range(len(forms[0].types)) if len({f.types[i] for f in forms}) > 1]
        self.name = self._name(taken)

    def _name(self, taken):
        """That of a function whose name all others begin with, or a free one: that of the schema."""
        op = self.forms[0].op
        for f in sorted(self.forms, key=lambda f: len(f.name)):
            stem = f.name.rstrip('_').removesuffix('_out').removesuffix('_opt')
            if all(stem in g.name for g in self.forms):
                return f.name
        name = op.base + ('_out' if op.variant == 'out' else '')
        return None if name in taken or name.startswith('_') else name

    def form(self, *kinds):
        """The function for these kinds (True: a tensor) at the varying positions, or None."""
        return next((f.name for f in self.forms
                     if all((f.types[i] == 'Tensor') == k for i, k in zip(self.varying, kinds))), None)


def groups(ops):
    found = {}
    for op in ops:
        if op.base.startswith('_') or op.list_result or op.plain_result:
            continue
        for form in {op.c_name: Form(op, False), op.c_name_full: Form(op, True)}.values():
            found.setdefault(form.key(), []).append(form)
    taken = {n for op in ops for n in (op.c_name, op.c_name_full)}
    res = []
    for forms in found.values():
        if len(forms) < 2 or len({tuple(f.types) for f in forms}) != len(forms):
            continue
        group = Group(forms, taken)
        if group.name and len(group.varying) <= 2:
            taken.add(group.name)
            res.append(group)
    return res


def choice(value, tensor, number):
    """Without a function for one of them the compiler names the argument of the other function that does not fit."""
    if tensor and number:
        return f'TENSOR_EITHER_({value}, {tensor}, {number})'
    return tensor or number


def c_macro(group):
    names = [n for _, n, _ in group.forms[0].args]
    params = ', '.join(names[:-1] + ['...'])
    values = names[:-1] + ['__VA_ARGS__']
    # The controlling expression is not evaluated.
    control = [f'({values[i]})' for i in group.varying]

    def function(*kinds):
        f = group.form(*kinds)
        return f and f'tensor_{f}'

    if len(control) == 1:
        chosen = choice(control[0], function(True), function(False))
    else:
        chosen = choice(control[0], *[
            choice(control[1], function(first, True), function(first, False)) for first in (True, False)])
    for i in group.varying:
        if any(f.types[i] == 'Scalar' for f in group.forms):
            values[i] = f'TENSOR_OPERAND_({values[i]})'
    return f'#define tensor_{group.name}({params}) \\\n\t{chosen}({", ".join(values)})\n'


def cpp_overload(form, group):
    numbers = [i for i in group.varying if form.types[i] in NUMBERS]
    params, values = [], []
    for i, (decl, name, typ) in enumerate(form.args):
        if i in numbers:
            params.append(f'N{i} {name}')
            values.append(f'tensor_literal::number({name})' if typ == 'Scalar' else name)
        else:
            params.append(decl)
            values.append(name)
    if not numbers and form.name == group.name:
        return ''
    head = ''
    if numbers:
        head = ('template <' + ', '.join(f'class N{i}' for i in numbers) +
                ', ' + ', '.join(f'class = tensor_literal::if_number<N{i}>' for i in numbers) + '>\n')
    own = '::tensor_' + form.name
    return (f'{head}inline {form.op.ctype}tensor_{group.name}({", ".join(params)})\n'
            f'{{\n\treturn {own}({", ".join(values)});\n}}\n')


def text(ops):
    found = groups(ops)
    out = [PREAMBLE]
    out += [c_macro(g) for g in found]
    out.append('#else\n')
    out += [cpp_overload(f, g) for g in found for f in g.forms]
    out.append('#endif\n')
    return ''.join(out)
