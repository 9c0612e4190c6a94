# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes tensor/ops.hpp: class Tensor with a method for every operator on it, and a free function for every operator.

Overloads of an operator share its name. Where two of them could be called with the same arguments, the later one
loses defaults until they differ. Where an argument converts to parameters of different types of two overloads, the
narrower parameter is deduced, which is a better match than a conversion: see deduce().
"""
import re
import textwrap

import api

# schema type -> (C++ parameter, its expression for the C call)
PARAMETERS = {
    'Tensor': ('const Tensor &', '{}.get()'),
    'Tensor?': ('const optional_tensor &', 'given({})'),
    'Tensor[]': ('const tensors &', '{}'),
    'Tensor?[]': ('const tensors &', '{}'),
    'int': ('integer ', '{}'),
    'int?': ('optional_integer ', 'given({})'),
    'int[]': ('const ints &', '{}'),
    'int[]?': ('const ints &', '{}'),
    'bool': ('flag ', '{}'),
    'bool?': ('optional_flag ', 'given({})'),
    'bool[]': ('bits ', '{}.mask()'),
    'float': ('floating ', '{}'),
    'float?': ('optional_floating ', 'given({})'),
    'float[]': ('const floats &', '{}'),
    'float[]?': ('const floats &', '{}'),
    'str': ('const text &', '{}.c_str("@")'),
    'str?': ('const text &', '{}.c_str("@")'),
    'Scalar': ('const scalar &', 'needed({}, "@")'),
    'Scalar?': ('const optional_scalar &', '{}'),
    'Scalar[]': ('const scalars &', '{}'),
    'ScalarType': ('enum tensor_dtype ', '{}'),
    'ScalarType?': ('enum tensor_dtype ', '{}'),
    'Layout?': ('enum tensor_layout ', '{}'),
    'MemoryFormat?': ('enum tensor_memory_format ', '{}'),
    'Generator?': ('const generator &', '{}'),
    'Device?': ('tensor_device ', '{}'),
}

# Defaults that are None
NOT_GIVEN = {'int[]?': 'ints::none()', 'float[]?': 'floats::none()', 'ScalarType?': 'TENSOR_DTYPE_NONE',
             'Layout?': 'TENSOR_LAYOUT_NONE', 'MemoryFormat?': 'TENSOR_MEMORY_FORMAT_NONE'}

# The arguments that convert to a type, from the narrowest type to the widest. Braces of one element convert to all
# types that are classes.
ACCEPTS = {
    'flag ': {'bool'},
    'optional_flag ': {'bool', 'nullopt'},
    'integer ': {'int'},
    'optional_integer ': {'int', 'nullopt'},
    'floating ': {'int', 'floating'},
    'optional_floating ': {'int', 'floating', 'nullopt'},
    'const scalar &': {'bool', 'int', 'floating', 'braces'},
    'const optional_scalar &': {'bool', 'int', 'floating', 'braces', 'nullopt'},
    'const ints &': {'int', 'braces'},
    'const floats &': {'int', 'floating', 'braces'},
    'const scalars &': {'braces'},
}

# Names of parameters that are names of types in C++
RENAMED = {'dtype': 'type'}

# Methods that class tensor_base has by hand, for more types of arguments
BY_HAND = {'item', 'index', 'index_put', 'index_put_', 'is_nonzero'}


class Parameter:
    def __init__(self, op, arg, name):
        self.name = RENAMED.get(name, name)
        self.deduced = None  # the name of a deduced type
        self.keyword = arg is not None and arg.keyword
        if arg is None:  # the gathered options
            self.type, self.form, self.default = 'const options &', '{}', '{}'
            return
        self.type, call = PARAMETERS[arg.type]
        self.form = call.replace('@', f'{op.name}: argument {name}')
        enum = api.enumeration(op, arg)
        if enum:
            self.type = f'{enum} '
        self.default = self.default_of(arg, enum)

    @property
    def plain_type(self):
        return self.type.removeprefix('const ').rstrip('& ')

    @property
    def call(self):
        """The expression in the call of the C function."""
        return self.form.format(f'static_cast<libtensor::{self.plain_type}>({self.name})' if self.deduced else self.name)

    def declare(self, defaults):
        default = f' = {self.default}' if defaults and self.default is not None else ''
        if self.deduced:
            default = default.replace('= {}', f'= {self.plain_type}()')
        return (f'{self.deduced} ' if self.deduced else self.type) + self.name + default

    @staticmethod
    def default_of(arg, enum):
        d, t = arg.default, arg.type
        if d is None or arg.mutated:
            return None
        if d == 'None':
            return NOT_GIVEN.get(t, '{}')
        if enum:
            return f'static_cast<{enum}>({d})'
        if t.startswith('int['):
            values = d.strip('[]')
            return f'{{ {values} }}' if values else '{}'
        if t.startswith('str'):
            return '"{}"'.format(d.strip('\'"'))
        return {'True': 'true', 'False': 'false', 'long': 'TENSOR_I64'}.get(d, d)


class Function:
    """A C++ function that calls the C function of an Op."""

    def __init__(self, op):
        self.op = op
        self.name = op.c_name if op.base.startswith('__') else op.base + ('_out' if op.variant == 'out' else '')
        self.parameters = [Parameter(op, a, n) for _, n, a in op.c_args()]
        for earlier, later in zip(self.parameters[-2::-1], self.parameters[:0:-1]):
            if later.default is None:
                earlier.default = None

    @property
    def required(self):
        return sum(p.default is None for p in self.parameters)

    @property
    def types(self):
        return [p.type for p in self.parameters]

    @property
    def is_method(self):
        first = next(iter(self.op.args), None)
        return (self.op.variant != 'out' and first is not None and first.type == 'Tensor' and
                first.name in ('self', 'input') and not self.name.startswith('_') and
                not self.name.endswith('_backward') and self.name not in BY_HAND)

    @property
    def result(self):
        op = self.op
        if op.variant != 'function':
            return 'void' if op.multi else 'const Tensor &'
        if op.list_result:
            return 'std::vector<Tensor>'
        if op.plain_result:
            return {'Scalar': 'tensor_scalar', 'int': 'int64_t', 'bool': 'bool', 'float': 'double'}[op.plain_result]
        return result_struct(op) if op.multi else 'Tensor'

    def declare(self, method, defaults=True, scope='', inline=''):
        parameters = self.parameters[1 if method else 0:]
        text = ', '.join(p.declare(defaults) for p in parameters)
        result = self.result if method else self.result.replace('const Tensor &', 'Tensor')
        result += '' if result.endswith('&') else ' '
        qualifier = (' const &' if self.result.endswith('&') else ' const') if method else ''
        return f'{self.template(parameters, defaults)}{inline}{result}{scope}{self.name}({text}){qualifier}'

    @staticmethod
    def template(parameters, defaults):
        """The line with the parameters of a template, or nothing."""
        deduced = [p for p in parameters if p.deduced]
        if not deduced:
            return ''
        names = [f'class {p.deduced}' + (f' = {p.plain_type}' if defaults and p.default is not None else '')
                 for p in deduced]
        names += ['class' + (' = ' if defaults else ' /* = ') + f'if_converts<{p.deduced}, {p.plain_type}>' +
                  ('' if defaults else ' */') for p in deduced]
        return f'template <{", ".join(names)}>\n'

    def on_temporary(self):
        """An in-place method of a temporary tensor returns the tensor, because a reference to it would dangle."""
        names = ', '.join(p.name for p in self.parameters[1:])
        declared = self.declare(True).replace('const Tensor &', 'Tensor ', 1)
        return f'{declared}&\n{{\n\treturn {self.name}({names});\n}}\n'

    def body(self, method):
        op = self.op
        values = [p.call for p in self.parameters]
        if method:
            values[0] = 'get()'
        mutated = '*this' if method else self.parameters[0].name if self.parameters else ''
        call = f'::tensor_{op.c_name_full}('
        if op.variant != 'function':
            line = f'check({call}{", ".join(values)}));'
            return f'\t{line}\n' + ('' if op.multi else f'\treturn {mutated};\n')
        if op.list_result:
            values += ['results', 'room']
            return (f'\treturn results_of<Tensor>([&](::tensor **results, int64_t room) {{\n'
                    f'\t\treturn {call}{", ".join(values)});\n\t}});\n')
        if op.plain_result:
            return f'\t{self.result} result = {{}};\n\n\tcheck({call}{", ".join(values + ["&result"])}));\n\treturn result;\n'
        if op.multi:
            names = [n + '_result' for n in op.returns]
            values += [f'&{n}' for n in names]
            own = ', '.join(f'Tensor::maybe({n})' for n in names)
            null = ', '.join(f'*{n} = nullptr' for n in names)
            return f'\t::tensor {null};\n\n\tcheck({call}{", ".join(values)}));\n\treturn {{ {own} }};\n'
        return f'\treturn Tensor::result({call}{", ".join(values)}));\n'


def result_struct(op):
    """The struct of several results: its name is their names, so that operators with the same ones share it."""
    return '_and_'.join(op.returns)


def separate(functions):
    """Overloads that are told apart by their arguments. Returns them without those that cannot be."""
    kept = []
    for f in functions:
        others = [k for k in kept if k.name == f.name]
        for other in others:
            while clash(f, other):
                last = next((p for p in f.parameters if p.default is not None), None)
                if last is None:
                    f.name = f.op.c_name
                    break
                last.default = None
        kept.append(f)
    for f in kept:
        for other in kept:
            if other is not f and other.name == f.name:
                deduce(f, other)
    return kept


def clash(f, other):
    low = max(f.required, other.required)
    high = min(len(f.parameters), len(other.parameters))
    return f.name == other.name and any(f.types[:n] == other.types[:n] for n in range(low, high + 1))


def deduce(f, other):
    """Makes parameters of f deduced where a wider one of the other overload takes the same argument.

    A bool that comes first in f and is keyword-only in the schema, as `stable` of sort, could be taken for another one.
    It needs the next argument to follow.
    """
    wide = list(ACCEPTS)
    for i, (mine, its) in enumerate(zip(f.parameters, other.parameters)):
        if mine.type == its.type:
            continue
        if mine.keyword and 'bool' in ACCEPTS.get(mine.type, ()) and its.type == 'integer ':
            for p in f.parameters[:i + 2]:
                p.default = None
        if not (ACCEPTS.get(mine.type, set()) & ACCEPTS.get(its.type, set())):
            continue
        if wide.index(mine.type) < wide.index(its.type):
            mine.deduced = f'T{i}'


def comment(op, indent):
    lines = textwrap.wrap(op.text, 100, break_long_words=False)
    if len(lines) == 1:
        return f'{indent}/* {lines[0]} */\n'
    return f'{indent}/*\n' + ''.join(f'{indent} * {line}\n' for line in lines) + f'{indent} */\n'


def indented(text):
    return re.sub(r'^(?=.)', '\t', text, flags=re.M)


def header(ops):
    functions = []
    names = {}
    for op in ops:
        f = Function(op)
        names.setdefault(f.name, []).append(f)
    for same in names.values():
        functions += separate(same)
    methods = [f for f in functions if f.is_method]
    late = [f for f in methods if '_and_' in f.result]

    structs = {}
    for f in functions:
        if '_and_' in f.result:
            structs[f.result] = f.op.returns
    out = [api.NOTE, '#ifndef TENSOR_OPS_HPP\n#define TENSOR_OPS_HPP\n\n#include <tensor/base.hpp>\n\n'
           'namespace libtensor\n{\n\n']
    out += [f'struct {name};\n' for name in structs]
    out.append('\n/* A reference of a tensor, with a method for every operator on it. */\n'
               'class Tensor : public tensor_base<Tensor> {\n    public:\n'
               '\tusing tensor_base::tensor_base;\n\n\tTensor() = default;\n\tTensor(const Tensor &) = default;\n'
               '\tTensor(Tensor &&) noexcept = default;\n\tTensor &operator=(const Tensor &) & = default;\n'
               '\tTensor &operator=(Tensor &&) & noexcept = default;\n\n')
    for f in methods:
        out.append(comment(f.op, '\t'))
        if f in late:
            out.append(indented(f'{f.declare(True)};\n') + '\n')
        else:
            out.append(indented(f'{f.declare(True)}\n{{\n{f.body(True)}}}\n') + '\n')
        if f.result == 'const Tensor &':
            out.append(indented(f.on_temporary()) + '\n')
    out.append('};\n\n')
    for name, fields in structs.items():
        out.append(f'struct {name} {{\n' + ''.join(f'\tTensor {n};\n' for n in fields) + '};\n\n')
    for f in late:
        out.append(f'{f.declare(True, False, "Tensor::", "inline ")}\n{{\n{f.body(True)}}}\n\n')
    for f in functions:
        out.append(comment(f.op, ''))
        out.append(f'{f.declare(False, inline="inline ")}\n{{\n{f.body(False)}}}\n\n')
    out.append('} /* namespace libtensor */\n\n#endif\n')
    return ''.join(out)
