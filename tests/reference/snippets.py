# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Extracts the C blocks of the guides into programs, which the test compiles and runs.

  ```c            statements; they run in a tensor_scope with x and y [2, 3] and i [2]; no call may fail
  ```c fails      the same; a call must fail
  ```c program    a program of its own, which must exit with 0

and in tables with the head "libtensor" the second column, where it is a statement (ends with a semicolon).
"""
import re

PRELUDE = '''#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>
#include <tensor/parallel.h>
#include <tensor/tensor.h>

#pragma GCC diagnostic ignored "-Wunused-value"
#pragma GCC diagnostic ignored "-Wunused-variable"
#pragma GCC diagnostic ignored "-Wunused-but-set-variable"

static int failed;

static void check(const char *place, bool fails)
{
	if (!tensor_last_error()->code == fails) {
		printf("# %s: %s\\n", place, fails ? "nothing failed" : tensor_last_error()->text);
		failed++;
	}
	tensor_clear_error();
}

'''
SETUP = '''	tensor_scope {
		tensor *x = tensor_randn(TENSOR_SHAPE(2, 3), TENSOR_OPTIONS(0));
		tensor *y = tensor_randn(TENSOR_SHAPE(2, 3), TENSOR_OPTIONS(0));
		tensor *i = tensor_arange(TENSOR_SCALAR(2), TENSOR_OPTIONS(0));

		if (!x || !y || !i)
			exit(1);
'''


def pieces(path):
    """Yields (kind, line, code) of each block; kind is run, fails or program."""
    with open(path) as f:
        lines = f.read().split('\n')
    at, table = 0, False
    while at < len(lines):
        m = re.fullmatch(r'```c ?(fails|program)?', lines[at])
        if m:
            end = lines.index('```', at)
            kind = m.group(1) or ('program' if any('int main(' in line for line in lines[at:end]) else 'run')
            yield kind, at + 2, '\n'.join(lines[at + 1:end])
            at = end
        elif lines[at].startswith('```'):
            at = lines.index('```', at + 1)
        elif lines[at].startswith('|'):
            table = table or lines[at].endswith('| libtensor |')
            code = re.fullmatch(r'\|.*\| `([^`]+;)` \|', lines[at])
            if table and code:
                yield 'run', at + 1, code.group(1)
        else:
            table = False
        at += 1


def program(paths):
    """Returns one program of all statements, and a list of (place, program) for the blocks that are programs."""
    calls, out, programs = [], [PRELUDE], []
    for path in paths:
        for kind, line, code in pieces(path):
            place = f'{path}:{line}'
            if kind == 'program':
                programs.append((place, code))
                continue
            name = f'line_{len(calls)}'
            calls.append(name)
            out.append(f'static void {name}(void)\n{{\n{SETUP}#line {line} "{path}"\n{code}\n\t}}\n'
                       f'\tcheck("{place}", {str(kind == "fails").lower()});\n}}\n\n')
    out.append('int main(void)\n{\n' + ''.join(f'\t{name}();\n' for name in calls) + '\treturn failed != 0;\n}\n')
    return ''.join(out), len(calls), programs
