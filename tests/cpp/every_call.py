#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes a C++ program that calls every function of tensor/ops.hpp, with its required arguments and with all of them.

usage: every_call.py OPS.HPP STYLE

Arguments are written in one of the styles below. That the program compiles shows that no overload hides another one and
that no call is ambiguous. It is not made to run.
"""
import re
import sys

# type of a parameter -> argument
ARGUMENTS = {
    'const Tensor &': 't', 'const optional_tensor &': 't', 'const tensors &': '{ t, t }', 'integer': '1', 'optional_integer': '1', 'flag': 'true',
    'optional_flag': 'true', 'floating': '0.5', 'optional_floating': '0.5', 'const scalar &': '2.5',
    'const optional_scalar &': '2.5', 'const ints &': '{ 1, 2 }', 'const floats &': '{ 0.5, 1.5 }',
    'const scalars &': '{ 1, 2.5 }', 'const text &': '"a"', 'bits': '1u', 'tensor_device': 'cpu',
    'const options &': 'options(f64)', 'const generator &': 'g',
}
STYLES = {
    'plain': {},
    'integers': {'const ints &': '1', 'const scalar &': '2', 'const optional_scalar &': '2', 'floating': '1',
                 'optional_floating': '1'},
    'zeros': {'integer': '0', 'optional_integer': '0', 'const ints &': '{ 0 }', 'const scalar &': 'true'},
    'sizes': {'integer': 'n', 'optional_integer': 'n', 'const ints &': '{ n, n }', 'const scalar &': 'n'},
}


def argument(parameter, deduced, style):
    kind = re.match(r'(.*?[& ])\w+$', parameter).group(1).strip()
    kind = deduced.get(kind, kind)
    if kind.startswith('enum'):
        return f'static_cast<{kind}>(0)'
    if f'const {kind} &' in ARGUMENTS:
        kind = f'const {kind} &'
    return {**ARGUMENTS, **STYLES[style]}[kind]


def calls(header, style):
    for template, name, declared in re.findall(r'^(template <.*>\n)?inline [^(\n]*?(\w+)\((.*)\)$', header, re.M):
        if f'::{name}({declared})' in header:  # a method, which is defined behind its class
            continue
        deduced = dict(re.findall(r'if_converts<(T\d+), (\w+)>', template))
        parameters = [p.partition(' = ') for p in re.split(r', (?![^{]*})', declared)]
        given = [argument(p, deduced, style) for p, _, _ in parameters]
        required = sum(not default for _, default, _ in parameters)
        for count in sorted({required, len(given)}):
            yield f'\tlibtensor::{name}({", ".join(given[:count])});\n'


def main(path, style):
    with open(path, encoding='utf-8') as file:
        written = list(calls(file.read(), style))
    print('#include <tensor/tensor.hpp>\nusing namespace libtensor;\n'
          'void every_call(Tensor t, generator g, std::size_t n);\n'
          'void every_call(Tensor t, generator g, std::size_t n)\n{\n\t(void)n;')
    print(''.join(written) + '}')
    assert len(written) > 1500, f'{len(written)} calls in {path}'


main(*sys.argv[1:])
