# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the types of the Python package's functions and methods (build/gen/python/_C.pyi).

python/devtensor/_C.pyi.in has what is written by hand; the lines RESULTS, METHODS and FUNCTIONS in it are replaced. An
operator has a signature for each overload, and further ones where it takes NumPy's names of arguments or a list as arguments
of their own.
"""
import keyword
import os
import re

import python
import schema

# The template defines the names with an underscore: the module and the class Tensor have names like int and dtype.
TYPES = {
    'Tensor': 'Tensor', 'Tensor[]': '_Sequence[Tensor]', 'Tensor?[]': '_Sequence[Tensor | None]',
    'int': '_Index', 'int[]': '_Index | _Sequence[_Index]',
    'bool': '_bool', 'bool[]': '_Sequence[_bool]',
    'float': '_float', 'float[]': '_Sequence[_float]',
    'Scalar': '_complex', 'Scalar[]': '_Sequence[_complex]',
    'str': '_str', 'ScalarType': '_DTypeLike', 'Layout': '_layout', 'MemoryFormat': '_memory_format',
    'Generator': 'Generator', 'Device': '_DeviceLike',
}
OTHER_NAMES = {'dim': 'axis', 'keepdim': 'keepdims'}
INDENT = '    '


def template():
    here = os.path.dirname(os.path.abspath(__file__))
    return os.path.normpath(os.path.join(here, '..', '..', '..', 'python', 'devtensor', '_C.pyi.in'))


def annotation(arg):
    optional = arg.type.endswith('?') or arg.default == 'None'
    return TYPES[arg.type.removesuffix('?')] + (' | None' if optional else '')


def is_optional(arg):
    return arg.default is not None or arg.type == 'Generator?'


def has_requires_grad(op):
    return any(a.type.startswith('Layout') for a in op.args)


class Signature:
    """The parameters of one form of an operator, without those of its results."""

    def __init__(self, op, method, names=None, many=False):
        self.op, self.method, self.names, self.many = op, method, names or {}, many
        outs = [a for a in op.args if a.mutated and a.keyword]
        self.positional = [a for a in op.args if not a.keyword]
        self.keywords = [a for a in op.args if a.keyword and a not in outs]
        self.outs = outs
        # Without a default where a parameter without one follows.
        required = [i for i, a in enumerate(self.positional) if not is_optional(a)]
        self.first_optional = required[-1] + 1 if required else 0

    def name(self, arg):
        if arg.name == 'self':
            return 'input'
        return self.names.get(arg.name, arg.name)

    def parameter(self, arg, default):
        return f'{self.name(arg)}: {annotation(arg)}' + (' = ...' if default else '')

    def leading(self):
        """The parameters by position. One with the name of a keyword of Python has no name for callers."""
        parts, last = [], None
        for i, a in enumerate(self.positional):
            if self.method and i == 0:
                parts.append('self')
            elif self.many and i == len(self.positional) - 1:
                parts.append(f'*{self.name(a)}: _Index')
            elif keyword.iskeyword(self.name(a)):
                parts.append(f'{a.name}_: {annotation(a)}')
                last = i
            else:
                parts.append(self.parameter(a, not self.many and i >= self.first_optional))
        if last is not None:
            parts.insert(last + 1, '/')
        return parts

    def parameters(self):
        parts = self.leading()
        named = [self.parameter(a, is_optional(a)) for a in self.keywords]
        named += [f'{a.name}: Tensor' for a in self.outs]
        if has_requires_grad(self.op):
            named.append('requires_grad: _bool = ...')
        if named and not self.many:
            parts.append('*')
        return ', '.join(parts + named)


def result_class(op):
    """One class for the overloads of a name whose results have the same names."""
    return f'_{op.base}_{"_".join(op.returns)}'


def is_named(op):
    return op.variant == 'function' and len(op.returns) > 1 and 'result' not in op.returns


def result(op, method):
    n = len(op.returns)
    if op.variant == 'inplace':
        return ('_Self' if method else 'Tensor') if n else 'None'
    if op.list_result:
        return '_tuple[Tensor, ...]'
    if op.plain_result:
        return {'int': '_int', 'bool': '_bool', 'float': '_float'}.get(op.plain_result, '_Any')
    if is_named(op):
        return result_class(op)
    if n == 0:
        return 'None'
    return 'Tensor' if n == 1 else f'_tuple[{", ".join(["Tensor"] * n)}]'


def takes_many(op, method):
    """As in call.c: the last parameter by position is a list of any length, whose elements may be arguments."""
    positional = [a for a in op.args if not a.keyword]
    return (len(positional) > int(method) and positional[-1].type == 'int[]'
            and re.search(rf'int\[\] {positional[-1].name}\b', op.text) is not None)


def forms(op, method):
    yield Signature(op, method)
    if any(a.name in OTHER_NAMES for a in op.args):
        yield Signature(op, method, OTHER_NAMES)
    if takes_many(op, method):
        yield Signature(op, method, many=True)


def breadth(parameters):
    """Type checkers take the first overload that fits: the narrower ones come first."""
    return re.search(r'\*\w', parameters) is not None, '_Index | _Sequence' in parameters


def is_covered(parameters, by):
    """True if the other form has these parameters, and further ones with defaults."""
    few, many = schema.split_args(parameters), schema.split_args(by)
    return parameters != by and set(few) <= set(many) and all(p in few or p.endswith('= ...') for p in many)


def definitions(name, overloads, method):
    indent = INDENT if method else ''
    shown = []
    for op in overloads:
        if method and (op.variant == 'out' or not (op.args and op.args[0].name == 'self')):
            continue
        for form in forms(op, method):
            parameters = form.parameters()
            if parameters not in [p for p, _ in shown]:
                shown.append((parameters, result(op, method)))
    shown = [form for form in shown if not any(is_covered(form[0], by) for by, _ in shown)]
    shown.sort(key=lambda form: breadth(form[0]))
    mark = f'{indent}@_overload\n' if len(shown) > 1 else ''
    return ''.join(f'{mark}{indent}def {name}({parameters}) -> {returns}: ...\n' for parameters, returns in shown)


def classes(ops):
    """A NamedTuple for each operator with several results that have names."""
    fields = {result_class(op): op.returns for op in ops if is_named(op) and not op.base.startswith('__')}
    return ''.join(f'class {name}(_NamedTuple):\n' + ''.join(f'{INDENT}{r}: Tensor\n' for r in returns)
                   for name, returns in sorted(fields.items()))


def stubs(ops):
    with open(template(), encoding='utf-8') as f:
        text = f.read()
    names = python.functions(ops)
    methods = ''.join(definitions(n, o, True) for n, o in names.items() if python.is_method(o))
    functions = ''.join(definitions(n, o, False) for n, o in names.items())
    for mark, lines in (('RESULTS', classes(ops)), ('METHODS', methods), ('FUNCTIONS', functions)):
        text = text.replace(f'# {mark}\n', lines)
    return text
