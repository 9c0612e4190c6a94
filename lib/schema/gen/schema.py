# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Operator declarations: reads lib/schema/ops/GROUP/*.yaml and derives the in-place and out variants.

A file declares a family of operators; their derivatives are in the file of the same name in
lib/schema/derivatives/GROUP/. The module entries has the table of the fields and their values:

  func      the functional schema, in the field's schema language. Positional arguments are all
            arguments of the C function; keyword-only ones with a default have a second
            function with the suffix _opt. A name with _ at its end and a first argument that
            is written is an in-place form without a functional one. dtype, layout, device and shareable together,
            with memory_format where there is one, become one tensor_options.
  variants  forms of the operator: function, inplace (add_), out (add_out). Default: function.
  inplace, out  overload names of these forms. Defaults: that of the functional form (inplace); out, or
            OVERLOAD_out. The argument of the overload grad_input has this name, too
  c         name of the C function without tensor_. Default: base_overload
  exactly one of
    op        op_<name>() in lib/ops infers the result and allocates it, a kernel of each
              backend computes; serves all variants
    view      view_<name>(): a view of the same memory, on every strided backend
    factory   factory_<name>(): allocates a tensor from options
    composite composite_<name>(): calls other operators, differentiated through them; the only
              kind that may return Tensor[]: the C function fills results[], an array with
              space for room tensors, and returns their number
              In-place and out forms are functions of their own, composite_<name>_() and _out()
    each      an operator that is called for each position of the lists among the arguments: its
              schema name, or a call of it in C over the arguments' names. Without a call it gets
              the arguments in their order. An in-place form calls the operator's in-place form
    alias     the same operator under another name: a schema name, or a call as with `each`
    explicit  explicit_<name>(): calls other operators but has a derivative of its own (ATen's
              CompositeExplicitAutograd), on every strided backend
  dispatch  functions of further keys: {SparseCPU: mm_sparse}. Beside `op` they are op_<name>()
            and serve every variant; beside anything else they are kernel_<name>(), with the C
            type of the public function, and serve the functional form. `same` is the entry's
            own function. An entry without another kind has no function for other keys
  batch     the rule on tensors of tensor_vmap(): a function batch_rule_NAME() in lib/batch, and a number
            for it. Default: see the module batch
  reads     {index: twice}: arguments whose elements the operator reads again after it relied on their
            values (positions that are checked, then used). If another process may write to the
            memory, the functions get a private copy (lib/ops/snapshot.h)
  kernel    name of the kernel table that backends fill. Default: the base name.
  also      names of further kernel tables that the operator's function uses
  devices   the same, of tables that the CPU does not fill
  dtype     the result's dtype: same, promote, float, bool, sum, index (see enum dtype_rule)
  tags      pointwise, reduction; autocast_lower, autocast_f32, autocast_promote: what the functional form does in
            tensor_autocast (lib/train/autocast.c); variants and views get their tags automatically
  doc       what the operator computes: a sentence or two, or a formula. The reference (make reference)
            shows it with the next four; lib/schema/gen/reference.py derives missing ones from the
            schema. An operator without a sentence and shapes is an error
  shapes    of arguments and results, with named dimensions: self [*, n, k], mat2 [k, m]. * stands for
            any number of dimensions
  dtypes    of arguments to which the rule of the field dtype does not apply
  errors    errors of the operator itself, with their conditions
  source    paper or standard; `libtensor; ...` if PyTorch has no operator of this name
  for       [sqrt, neg]: an entry for each of these, with the word in place of every {}

An Op is one schema (one entry of the dispatcher): `add.Tensor`, `add_.Tensor` and `add.out` are
three, made from one entry. Only this file defines C names and C types of arguments.
"""
import math
import os
import re
import sys

import reference
from entries import KEYS, OPERATOR, OPERATOR_NAME, WORD, SchemaError, check, check_brackets, read, shown, stop

# schema type -> (C type, tensor_arg_type, unbox function)
TYPES = {
    'Tensor': ('tensor *', 'TENSOR_ARG_TENSOR', 'unbox_tensor'),
    'Tensor?': ('tensor *', 'TENSOR_ARG_OPTIONAL_TENSOR', 'unbox_optional_tensor'),
    'Tensor[]': ('tensor_list ', 'TENSOR_ARG_TENSOR_LIST', 'unbox_list'),
    'Tensor?[]': ('tensor_list ', 'TENSOR_ARG_OPTIONAL_TENSOR_LIST', 'unbox_list'),
    'int': ('int64_t ', 'TENSOR_ARG_INT', 'unbox_int'),
    'int?': ('int64_t ', 'TENSOR_ARG_OPTIONAL_INT', 'unbox_int'),
    'int[]': ('tensor_ints ', 'TENSOR_ARG_INTS', 'unbox_ints'),
    'int[]?': ('tensor_ints ', 'TENSOR_ARG_OPTIONAL_INTS', 'unbox_ints'),
    'bool': ('bool ', 'TENSOR_ARG_BOOL', 'unbox_bool'),
    'bool?': ('int64_t ', 'TENSOR_ARG_OPTIONAL_BOOL', 'unbox_int'),
    'bool[]': ('uint64_t ', 'TENSOR_ARG_BOOLS', 'unbox_bools'),  # bit i: element i
    'float': ('double ', 'TENSOR_ARG_FLOAT', 'unbox_float'),
    'float?': ('double ', 'TENSOR_ARG_OPTIONAL_FLOAT', 'unbox_float'),  # None is TENSOR_NO_FLOAT
    'float[]': ('tensor_floats ', 'TENSOR_ARG_FLOATS', 'unbox_floats'),
    'float[]?': ('tensor_floats ', 'TENSOR_ARG_OPTIONAL_FLOATS', 'unbox_floats'),
    'str': ('const char *', 'TENSOR_ARG_STRING', 'unbox_string'),
    'str?': ('const char *', 'TENSOR_ARG_OPTIONAL_STRING', 'unbox_string'),
    'Scalar': ('tensor_scalar ', 'TENSOR_ARG_SCALAR', 'unbox_scalar'),
    'Scalar[]': ('tensor_scalars ', 'TENSOR_ARG_SCALARS', 'unbox_scalars'),
    'Scalar?': ('tensor_scalar ', 'TENSOR_ARG_OPTIONAL_SCALAR', 'unbox_scalar'),
    'ScalarType?': ('enum tensor_dtype ', 'TENSOR_ARG_DTYPE', 'unbox_dtype'),
    'ScalarType': ('enum tensor_dtype ', 'TENSOR_ARG_DTYPE', 'unbox_dtype'),
    'Layout?': ('enum tensor_layout ', 'TENSOR_ARG_LAYOUT', 'unbox_layout'),
    'MemoryFormat?': ('enum tensor_memory_format ', 'TENSOR_ARG_MEMORY_FORMAT', 'unbox_memory_format'),
    'Generator?': ('tensor_generator *', 'TENSOR_ARG_GENERATOR', 'unbox_generator'),
    'Device?': ('tensor_device ', 'TENSOR_ARG_DEVICE', 'unbox_device'),
}

# result type other than tensors -> (C type, tensor_value kind, its field)
RESULTS = {
    'Scalar': ('tensor_scalar ', 'SCALAR', 'scalar'),
    'int': ('int64_t ', 'INT', 'i'),
    'bool': ('bool ', 'BOOL', 'b'),
    'float': ('double ', 'FLOAT', 'f'),
}

OPTIONS = ['dtype', 'layout', 'device', 'shareable']  # gathered into one tensor_options,
GATHERED = OPTIONS + ['memory_format']  # together with this one
INT = r'-?(?:0|[1-9]\d*)'
FLOAT = rf'{INT}(?:\.\d*)?(?:e-?\d+)?'
# Defaults by type, as PyTorch's schemas spell them; `type?` has None as well. Other types have no default.
DEFAULTS = {t: re.compile(pattern, re.ASCII) for t, pattern in {
    'int': INT, 'int[]': rf'{INT}|\[(?:{INT}(?:, ?{INT})*)?\]', 'float': FLOAT, 'Scalar': FLOAT, 'bool': 'True|False',
    'str': r'"\w*"|\'\w*\'', 'ScalarType': 'long'}.items()}
RETURN = re.compile(rf'(Tensor(?:\(\w+!?\))?(?:\[\])?|{"|".join(RESULTS)})(?:\s+({WORD}))?', re.ASCII)
# Keywords of C11 and C++20, and the macros in lower case that the headers and the compiler define.
RESERVED = set("""alignas alignof and and_eq asm assert auto bitand bitor bool break case catch char char8_t char16_t char32_t
    class co_await co_return co_yield compl complex concept const const_cast consteval constexpr constinit continue decltype
    default delete do double dynamic_cast else enum errno explicit export extern false float for friend goto i386 if imaginary
    inline int linux long mutable namespace new noexcept noreturn not not_eq nullptr offsetof operator or or_eq private
    protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert static_cast
    stderr stdin stdout struct switch template this thread_local throw true try typedef typeid typename typeof union unix
    unsigned using virtual void volatile wchar_t while xor xor_eq""".split())
# Macros of errno.h, stddef.h, stdint.h and limits.h, those of libtensor, and names that C keeps for the compiler.
MACRO = re.compile(r'NULL|EOF|E[A-Z0-9]{3,}|TENSOR_\w*|\w+_(MAX|MIN|C|BIT|WIDTH)|I|_[A-Z_]\w*|\w*__\w*', re.ASCII)
KINDS = ['op', 'view', 'composite', 'factory', 'each', 'alias', 'explicit']


class Arg:
    def __init__(self, typ, name, default, keyword, mutated):
        if typ not in TYPES:
            raise SchemaError(f'unknown type {typ}')
        check_default(typ, default)
        self.type, self.name, self.default = typ, name, default
        self.keyword, self.mutated = keyword, mutated
        self.ctype, self.enum, self.unbox = TYPES[typ]

    @property
    def is_tensor(self):
        return self.type in ('Tensor', 'Tensor?')

    @property
    def decl(self):
        return f'{self.ctype}{self.name}'

    def default_c(self):
        """The default as a C expression, or a zero value where there is none."""
        d, t = self.default, self.type
        if t.endswith('?') and d in (None, 'None'):
            return {'Tensor?': 'NULL', 'int?': 'TENSOR_NONE', 'bool?': 'TENSOR_NONE',
                    'int[]?': 'TENSOR_NO_INTS', 'float?': 'TENSOR_NO_FLOAT', 'float[]?': 'TENSOR_NO_FLOATS',
                    'str?': 'NULL', 'Generator?': 'NULL',
                    'Scalar?': '((tensor_scalar){.kind = TENSOR_SCALAR_NONE})',
                    'Device?': '((tensor_device){0, 0})'}.get(t, '0')
        if t == 'Scalar[]':
            return '((tensor_scalars){0})'
        if t.startswith('Scalar') and not t.startswith('ScalarType'):
            if d is None:
                return '((tensor_scalar){.kind = TENSOR_SCALAR_NONE})'
            kind = 'float' if re.search(r'[.e]', d) else 'int'
            return f'tensor_scalar_{kind}({d})'
        if t.startswith('int[]'):
            if d is None:
                return 'TENSOR_NO_INTS'
            values = d.strip('[]')
            return f'TENSOR_INTS({values})' if values else 'TENSOR_SCALAR_SHAPE'
        if t == 'Tensor':
            return 'NULL'
        if t in ('Tensor[]', 'Tensor?[]'):
            return '((tensor_list){0})'
        if t.startswith('float[]'):
            return 'TENSOR_NO_FLOATS'
        if t.startswith('str'):
            return '"{}"'.format(d.strip('\'"')) if d else 'NULL'
        if d is None:
            return '((tensor_device){0, 0})' if t == 'Device?' else '0'
        return {'True': 'true', 'False': 'false', 'None': '0', 'long': 'TENSOR_I64'}.get(d, d)


def check_default(typ, text):
    """The text becomes part of the C source, where 010 is 8 and 1e999 is infinite."""
    if text is None or text == 'None' and typ.endswith('?'):
        return
    allowed = DEFAULTS.get(typ.rstrip('?'))
    if not allowed or not allowed.fullmatch(text):
        raise SchemaError(f'{typ} cannot have the default {shown(text)}', 'func')
    for number in re.findall(FLOAT, text) if typ[0] in 'ifS' else ():
        whole = re.fullmatch(INT, number)
        if abs(int(number)) >= 2**63 if whole else math.isinf(float(number)):
            raise SchemaError(f'the default {number} is too large', 'func')


def parse_arg(text, keyword):
    m = re.fullmatch(rf'(\w+(?:\(\w+!?\))?\??(?:\[\d*\])?\??)\s+({WORD})(?:=(.+))?', text)
    if not m:
        raise SchemaError(f'cannot read argument {text!r}', 'func')
    typ, name, default = m.groups()
    mutated = '!)' in typ
    typ = re.sub(r'\(\w+!?\)', '', typ)
    typ = re.sub(r'\[\d+\]', '[]', typ)
    return Arg(typ, name, default, keyword, mutated)


def split_args(text):
    depth, start, out = 0, 0, []
    for i, ch in enumerate(text):
        depth += (ch in '([') - (ch in ')]')
        if ch == ',' and depth == 0:
            out.append(text[start:i].strip())
            start = i + 1
    if text[start:].strip():
        out.append(text[start:].strip())
    return out


class Op:
    """One schema. `kind` of call: function, inplace or out."""

    def __init__(self, entry, name, overload, args, returns, variant, text):
        self.entry, self.base, self.overload = entry, name, overload
        self.args, self.returns, self.variant, self.text = args, returns, variant, text
        self.name = f'{name}.{overload}' if overload else name
        self.id = re.sub(r'\W', '_', self.name)
        self.tags = list(entry.get('tags', []))
        check_names([a.name for a in args])
        if variant != 'function':
            self.tags.append(variant)
        self.kind = next((k for k in KINDS if k in entry), 'dispatch')
        self.impl = entry.get(self.kind) if self.kind != 'dispatch' else None
        if self.kind == 'composite':
            self.impl += {'function': '', 'inplace': '_', 'out': '_out'}[variant]
        self.dispatch = dict(entry.get('dispatch', {}))
        if self.kind == 'dispatch' and 'same' in self.dispatch.values():
            raise SchemaError(f'{self.name}: there is no other function to be the same as')
        if self.kind != 'op' and variant != 'function' and self.dispatch:
            raise SchemaError(f'{self.name}: only `op` serves other variants by key')
        self.kernel = entry.get('kernel', entry['func'].split('(')[0].split('.')[0])
        self.twice = [self._twice(name, how) for name, how in entry.get('reads', {}).items()]
        self.rule = entry.get('dtype', 'same')
        self.words = None  # set by reference.describe()
        self.calls = None  # of `each` and `alias`: the operator, and the arguments of the call in C
        self.list_result = False  # -> Tensor[]: as many as there are
        self.plain_result = None  # -> Scalar, int, bool or float
        self.derivative = None  # set by the autograd generator
        if self.kind == 'view':
            self.tags.append('view')

    def _twice(self, name, how):
        arg = next((a for a in self.args if a.name == name and a.is_tensor and not a.mutated), None)
        if how != 'twice' or not arg:
            raise SchemaError(f'{self.name}: reads: {{{name}: {how}}} is no tensor that is read twice')
        if self.kind in ('view', 'factory', 'composite'):
            raise SchemaError(f'{self.name}: only `op` and `explicit` read twice')
        return arg

    @property
    def calls_others(self):
        """Its function calls public operators, whose errors name them."""
        return self.kind in ('composite', 'explicit', 'each', 'alias')

    @property
    def outs(self):
        return [a for a in self.args if a.mutated and a.keyword] if self.variant == 'out' else []

    @property
    def multi(self):
        """The C function returns an int, and its results through pointers."""
        return len(self.returns) != 1 or self.list_result or self.plain_result is not None

    @property
    def optional_results(self):
        """A mask says which results are wanted: the others are NULL."""
        return any(a.type == 'bool[]' for a in self.args)

    @property
    def c_name(self):
        """tensor_<c_name> is the short public function."""
        return self._c('')

    @property
    def c_name_full(self):
        return self._c('_opt') if self.hidden else self._c('')

    def _c(self, opt):
        base = self.entry.get('c')
        if not base:
            raw, _, ov = self.entry['func'].split('(')[0].partition('.')
            if self.own:
                raw = raw[:-1]
            base = raw if ov in ('', 'Tensor', 'self', 'int') else f'{raw}_{ov.lower()}'
        return base + opt + {'function': '', 'inplace': '_', 'out': '_out'}[self.variant]

    @property
    def own(self):
        """An in-place form that was declared as such."""
        return self.variant == 'inplace' and self.entry['func'].split('(')[0].partition('.')[0] == self.base

    @property
    def gathers(self):
        return all(any(a.name == n for a in self.args) for n in OPTIONS)

    @property
    def hidden(self):
        """Arguments that the short function leaves at their defaults."""
        return [a for a in self.args if a.keyword and a.default is not None and not a.mutated
                and not (self.gathers and a.name in GATHERED)]

    def c_args(self):
        """(C declaration, C name, Arg or None) in C order: out arguments first, options gathered."""
        res = [(a.decl, a.name, a) for a in self.outs]
        for a in self.args:
            if a in self.outs:
                continue
            if self.gathers and a.name in GATHERED:
                if a.name == 'dtype':
                    res.append(('tensor_options options', 'options', None))
                continue
            res.append((a.decl, a.name, a))
        return res

    def c_results(self):
        """Extra pointer arguments of an operator with several results."""
        if not self.multi or self.variant != 'function':
            return []
        if self.list_result:
            return [('tensor **results', 'results'), ('int64_t room', 'room')]
        if self.plain_result:
            return [(f'{RESULTS[self.plain_result][0]}*result', 'result')]
        return [(f'tensor **{n}', n) for n in self.returns]

    def params(self, hide=False):
        drop = {a.name for a in self.hidden} if hide else set()
        decls = [d for d, n, _ in self.c_args() if n not in drop]
        decls += [d for d, _ in self.c_results()]
        return ', '.join(decls) or 'void'

    @property
    def ctype(self):
        return 'int ' if self.multi else 'tensor *'

    @property
    def tensors(self):
        return [a for a in self.args if a.is_tensor]


def parse_returns(text):
    """(type, name or None) of each result."""
    found = []
    for part in split_args(text[1:-1] if text.startswith('(') else text):
        m = RETURN.fullmatch(part)
        if not m:
            raise SchemaError(f'cannot read result {part!r}', 'func')
        found.append(m.groups())
    return found


def parse_func(text):
    """The schema: name, overload, its arguments as text and as Args, results."""
    m = re.fullmatch(rf'({OPERATOR_NAME})\((.*)\)\s*->\s*(\([^()]*(?:\(\w+!?\)[^()]*)*\)|[^(,]+(?:\(\w+!?\))?)', text)
    if not m:
        raise SchemaError(f'cannot read {text!r}', 'func')
    check_brackets(m[3])
    name, _, overload = m[1].partition('.')
    keyword, args = False, []
    for part in split_args(m[3]):
        if part == '*' and not keyword:
            keyword = True
        else:
            args.append(parse_arg(part, keyword))
    return name, overload, m[3], args, parse_returns(m[4])


def check_names(names):
    for name in names:
        if name in RESERVED:
            raise SchemaError(f'{name} is a word of C or C++', 'func')
        if MACRO.fullmatch(name):
            raise SchemaError(f'{name} is the name of a macro, or one that C reserves', 'func')
        if names.count(name) > 1:
            raise SchemaError(f'the name {name} is there twice', 'func')


def parse(entry):
    """All Ops of one entry."""
    name, overload, arg_text, args, rets = parse_func(entry['func'].strip())
    returns = [r[1] or 'result' for r in rets]
    if len(rets) > 1:
        check_names(returns)
    if sum(k in entry for k in KINDS) != 1 and ('dispatch' not in entry or
                                                any(k in entry for k in KINDS)):
        raise SchemaError(f'{name}: exactly one of {", ".join(KINDS)} is needed, or dispatch')

    ops = []
    variants = [v.strip() for v in entry.get('variants', 'function').split(',')]
    for v in variants:
        if v == 'function' and name.endswith('_') and args and args[0].mutated:
            ops.append(Op(entry, name, overload, args, ['self'] * len(returns), 'inplace',
                          entry['func'].strip()))
        elif v == 'function':
            op = Op(entry, name, overload, args, returns, 'function', entry['func'].strip())
            op.list_result = [r[0] for r in rets] == ['Tensor[]']
            op.plain_result = rets[0][0] if rets and rets[0][0] in RESULTS else None
            if op.list_result and op.kind not in ('composite', 'each', 'alias'):
                raise SchemaError(f'{name}: only a composite returns Tensor[]')
            ops.append(op)
        elif v == 'inplace':
            if not args or args[0].type not in ('Tensor', 'Tensor[]'):
                raise SchemaError(f'{name}: the first argument of an in-place form is a tensor or a list of tensors', 'variants')
            first = Arg(args[0].type, args[0].name, None, False, True)
            text = entry['func'].strip().replace('Tensor ', 'Tensor(a!) ', 1)
            ov = entry.get('inplace', overload)
            text = re.sub(r'^[\w.]+', f'{name}_' + (f'.{ov}' if ov else ''), text)
            text = re.sub(r'-> Tensor$', '-> Tensor(a!)', text)
            changed = ['self']
            if first.type == 'Tensor[]':
                text = text.replace('Tensor[] ', 'Tensor(a!)[] ', 1).replace('-> Tensor[]', '-> ()')
                changed = []
            ops.append(Op(entry, f'{name}_', entry.get('inplace', overload), [first] + args[1:], changed, v, text))
        else:
            ov = 'out' if overload in ('', 'Tensor') else f'{overload}_out'
            ov = entry.get('out', ov)
            names = [ov if ov == 'grad_input' else 'out'] if len(returns) == 1 else returns
            outs = [Arg('Tensor', n, None, True, True) for n in names]
            marks = [chr(ord('a') + i) for i in range(len(names))]
            star = '' if any(a.keyword for a in args) else '*, '
            decl = ', '.join(f'Tensor({marks[i]}!) {n}' for i, n in enumerate(names))
            ret = ', '.join(f'Tensor({marks[i]}!)' for i in range(len(names)))
            text = f'{name}.{ov}({arg_text}, {star}{decl}) -> ' + \
                (ret if len(names) == 1 else f'({ret})')
            ops.append(Op(entry, name, ov, args + outs, returns, v, text))
    return ops


def expand(entry):
    """The entries that an entry with `for` declares."""
    if 'for' not in entry:
        return [entry]
    check(entry.but({'for': entry['for']}), OPERATOR, ['for'])
    return [entry.but({k: v.replace('{}', word) if isinstance(v, str) else v for k, v in entry.items() if k != 'for'})
            for word in entry['for']]


def find_each(ops):
    """Sets op.calls for the kinds `each` and `alias`."""
    known = {op.name: op for op in ops}
    for op in ops:
        if op.kind not in ('each', 'alias'):
            continue
        name, _, text = op.impl.partition('(')
        target = known.get(name)
        if target and op.variant == 'inplace' and not op.own:
            target = next((o for o in ops if o.entry is target.entry and o.variant == 'inplace'), None)
        if not target:
            raise SchemaError(f'{op.entry.place}: {op.name}: there is no operator {name}, or no in-place form')
        if target is op:
            raise SchemaError(f'{op.entry.place}: {op.name}: {op.kind} calls itself')
        if op.kind == 'each' and not any(a.type in ('Tensor[]', 'Tensor?[]') for a in op.args):
            raise SchemaError(f'{op.entry.place}: {op.name}: each needs a list of tensors among the arguments')
        names = [n for _, n, _ in op.c_args()]
        names += [a.default_c() for _, _, a in target.c_args()[len(names):]]
        op.calls = (target, text.rstrip(')') if text else ', '.join(names))


def check_families(paths):
    """A file's name is that of its family, in all groups."""
    homes = {}
    for path in sorted(paths):
        name = os.path.splitext(os.path.basename(path))[0]
        if name in homes:
            sys.exit(f'{path}:1: the family {name} is in {homes[name]}, too')
        homes[name] = path


def load(paths):
    """All Ops, in the order of the files; op.family is the file's name."""
    ops, seen = [], set()
    check_families(paths)
    for path in sorted(paths):
        for written in read(path):
            try:
                for entry in expand(written):
                    check(entry, OPERATOR, ['func'])
                    for op in parse(entry):
                        if op.name in seen:
                            raise SchemaError(f'{op.name} is declared twice')
                        seen.add(op.name)
                        op.family = os.path.splitext(os.path.basename(path))[0]
                        ops.append(op)
            except SchemaError as e:
                stop(written, e)
    try:
        find_each(ops)
    except SchemaError as e:
        sys.exit(str(e))
    missing = reference.describe(ops)
    if missing:
        sys.exit('\n'.join(missing))
    return ops
