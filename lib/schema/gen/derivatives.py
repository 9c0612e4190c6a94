# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the autograd functions of every operator: lib/schema/derivatives/GROUP/*.yaml -> autograd_*.c.

One entry for each differentiable operator; its functional, in-place and out forms share it. An
operator that has no entry, is not composite and is not listed as nondifferentiable is an error.

  name      as in lib/schema/ops/
  outputs   the results that have a gradient. Default: the first.
  <arg>     a C expression for the gradient of this argument, over the library's public
            functions and the helpers of lib/autograd/formulas/. tensor_none: the gradient is zero.
            A tensor argument without a formula must not require a gradient.

A formula may read
  grad              the gradient of the (first differentiable) result; grads[i] with several,
                    where one may be NULL
  arguments         tensors are saved if a formula that is needed reads them; scalars,
                    strings and lists of integers are stored by value. An in-place
                    form saves a copy of self where a formula reads it. One list of tensors
                    may be read: elements that were not given are tensor_none
  result, or the result's name in the schema: the saved output
  sizes(x)          the sizes of argument x, without saving x
  options(x)        its dtype and device
  strides(x), offset(x)  the geometry of x in its storage
  lengths(xs, dim)  the size of each tensor of a list along dim
The formula of a list fills out[0], out[1] ...: a call of an int function with first argument
`out`. Gradients of broadcast or promoted arguments are summed and converted by the engine.

Generated for a differentiable operator: a node type with exactly the values that its formulas
read, the function that applies the formulas, and a function that records a call, registered
for the autograd key.
"""
import os
import re

import sources
from api import symbols
from entries import DERIVATIVE, FORMULA, SchemaError, check, read, stop
from formula import QUERIES, Formula, camel, fail
from schema import check_families

NOTE = '/* Generated from lib/schema/derivatives/. */\n'

CALLS = ('composite', 'each', 'alias')  # differentiated through the operators that they call
LISTS = ('Tensor[]', 'Tensor?[]')
REFUSALS = ('formula_not_again(', 'formula_no_derivative(')


class Derivative:
    def __init__(self, entry, forms):
        self.entry, self.name, self.forms = entry, entry['name'], forms
        op = self.op = forms[0]
        base, _, overload = self.name.partition('.')
        plain = overload in ('', 'Tensor', 'self', 'int')
        self.node = camel(op.entry.get('c') or base + ('' if plain else '_' + overload)) + 'Backward'
        self.returns = [r for r in op.returns] if op.variant == 'function' else ['result']
        self.args = [a for a in op.args if not (op.variant == 'out' and a in op.outs)]
        self.names = {}
        for a in self.args:
            self.names[a.name] = 'tensor' if a.is_tensor else 'list' if a.type in LISTS \
                else 'value'
        for r in self.returns:
            self.names[r] = 'tensor'
        self.outputs = entry.get('outputs', self.returns[:1])
        for name in self.outputs:
            if name not in self.returns:
                fail(entry, f'{self.name} has no result {name}', 'outputs')
        if self.outputs[0] != self.returns[0]:
            fail(entry, f'{self.name}: the first result must be differentiable', 'outputs')
        formulas = {k: v for k, v in entry.items() if k not in ('name', 'outputs')}
        order = [a for a in self.args if a.name in formulas]
        for k in formulas:
            if k not in [a.name for a in order]:
                fail(entry, f'{self.name} has no argument {k}', k)
        for a in order:
            if a.type not in ('Tensor', 'Tensor?', 'Tensor[]'):
                fail(entry, f'{self.name}: {a.name} is no tensor', a.name)
        if not order:
            fail(entry, f'{self.name} has no formula: list it as nondifferentiable')
        if any(a.type == 'Tensor[]' for a in order[:-1]):
            fail(entry, f'{self.name}: a list of tensors must be the last differentiable argument')
        self.formulas = [Formula(self, i, a, formulas[a.name]) for i, a in enumerate(order)]
        self.edge = {f.arg.name: f.index for f in self.formulas}
        read = {n for f in self.formulas for n in f.saved}
        self.saved = [n for n in self.names if n in read]
        lists = {n for f in self.formulas for n in f.lists}
        if len(lists) > 1:
            fail(entry, f'{self.name}: formulas read more than one list of tensors')
        self.saved_list = lists.pop() if lists else None
        self.values = [a for a in self.args if any(a.name in f.values for f in self.formulas)]
        for a in self.values:
            if a.type.startswith('float[]') or a.type == 'Generator?':
                fail(entry, f'{self.name}: a node cannot keep {a.name}')
        self.queries = []
        for f in self.formulas:
            self.queries += [q for q in f.queries if q not in self.queries]

    @property
    def list_arg(self):
        last = self.formulas[-1]
        return last.arg.name if last.is_list else None

    def source(self, name):
        """The source of a saved tensor: an edge, an output, or neither."""
        if name in self.returns and name not in [a.name for a in self.args]:
            if name in self.outputs:
                return f'SAVED_OUTPUT({self.outputs.index(name)})'
            return 'SAVED_CONSTANT'
        return str(self.edge.get(name, 'SAVED_CONSTANT'))

    # ---- the node -----------------------------------------------------------------------------

    def struct(self):
        out = [f'/* ---- {self.name} ---- */\n\nstruct {self.node} {{\n\ttensor_node node;\n']
        for a in self.values:
            out.append(f'\t{a.decl};\n')
        for what, name, _ in self.queries:
            out.append(f'\t{QUERIES[what][0]} {what}_{name};\n')
        if self.saved_list:
            out.append(f'\ttensor_list {self.saved_list};\n')
        return ''.join(out) + '};\n\n'

    def apply(self):
        out = [f'static int apply_{self.node}(tensor_node *node, tensor *const *grads, '
               'tensor **out, uint64_t need)\n{\n']
        if self.has_fields:
            out.append(f'\tstruct {self.node} *fields = (struct {self.node} *)node;\n')
        if any(re.search(r'\bgrad\b', f.text) for f in self.formulas):
            out.append('\ttensor *grad = grads[0];\n')
        out.append('\n')
        for f in self.formulas:
            if f.text == 'tensor_none':
                continue
            out.append(f'\tif ({f.bit}) {{\n')
            for v in f.values:
                a = next(a for a in self.args if a.name == v)
                out.append(f'\t\t{a.decl} = fields->{v};\n')
            for s in f.saved:
                out.append(f'\t\ttensor *{s} = node_unpack(node, {self.saved.index(s)});\n')
            for name in f.lists:
                out.append(f'\t\ttensor_list {name} = fields->{name};\n')
            if f.values or f.saved or f.lists:
                out.append('\n')
            for name in f.lists:
                out.append(f'\t\tif (node_unpack_list(node, {len(self.saved)}, {name}) < 0)\n'
                           '\t\t\treturn -1;\n')
            if f.saved:
                missing = ' || '.join(f'!{s}' for s in f.saved)
                out.append(f'\t\tif (unlikely({missing}))\n\t\t\treturn -1;\n')
            if f.is_list:
                shift = f' + {f.index}' if f.index else ''
                text = re.sub(r'\bout\b', f'out{shift}', f.text)
                out.append(f'\t\tif ({text} < 0)\n\t\t\treturn -1;\n')
            else:
                out.append(f'\t\tout[{f.index}] = {f.text};\n')
                if f.text != 'grad':
                    out.append(f'\t\tif (unlikely(!out[{f.index}]))\n\t\t\treturn -1;\n')
            out.append('\t}\n')
        out.append('\treturn 0;\n}\n\n')
        return ''.join(out)

    def type(self):
        names = 'NULL'
        out = []
        slots = self.saved + ([self.saved_list] if self.saved_list else [])
        if slots:
            names = f'saved_names_{self.node}'
            quoted = ', '.join(f'"{s}"' for s in slots)
            out.append(f'static const char *const {names}[] = {{{quoted}, NULL}};\n\n')
        out.append(f'static const struct node_type type_{self.node} = {{\n'
                   f'\t.name = "{self.node}",\n\t.op = "{self.name.split(".")[0]}",\n'
                   f'\t.apply = apply_{self.node},\n\t.saved_names = {names},\n}};\n\n')
        return ''.join(out)

    # ---- recording ----------------------------------------------------------------------------

    def needs(self, form):
        """Declarations of need0, need1 ... and a check of tensors that have no formula."""
        out = []
        for f in self.formulas:
            fn = 'track_list' if f.is_list else 'track'
            out.append(f'\tbool need{f.index} = {fn}(th, {f.arg.name}, &err);\n')
        return ''.join(out)

    def refusals(self, form):
        out = ['\tif (unlikely(err))\n', f'\t\treturn {self.failed(form)};\n']
        for a in self.args:
            if a.is_tensor and a.name not in self.edge:
                out.append(f'\tif (unlikely({a.name} && th->modes.grad_enabled && needs_grad({a.name}))) {{\n'
                           f'\t\ttensor_fail(EOPNOTSUPP, "{form.name}: no derivative for {a.name}, '
                           f'which requires a gradient");\n\t\treturn {self.failed(form)};\n\t}}\n')
        return ''.join(out)

    @staticmethod
    def failed(form):
        return '-thread()->error.code' if form.multi else 'NULL'

    @property
    def any(self):
        return ' | '.join(f'need{f.index}' for f in self.formulas)

    def new_node(self, described):
        nedges = f'{len(self.formulas)}'
        if self.list_arg:
            nedges = f'{len(self.formulas) - 1} + {self.list_arg}.len'
        ints = [f'({d} ? {d}->ndim : 0)' if self.op.optional_results else f'{d}->ndim'
                for d in described]
        nsaved = f'{len(self.saved)}'
        if self.saved_list:
            nsaved += f' + {self.saved_list}.len'
            ints.append(f'{self.saved_list}.len')
        for what, name, extra in self.queries:
            count = QUERIES[what][2]
            if count:
                ints.append(count.format(name, extra))
        for a in self.values:
            if a.type.startswith('int[]'):
                ints.append(f'ints_len({a.name})')
        return (f'\tnode = node_new(&type_{self.node}, sizeof(struct {self.node}), {nedges}, '
                f'{nsaved}, {len(described)}, {" + ".join(ints)});\n')

    @property
    def has_fields(self):
        return bool(self.values or self.queries or self.saved_list)

    def fill_values(self):
        out = []
        if self.has_fields:
            out.append(f'\tfields = (struct {self.node} *)node;\n')
        for what, name, extra in self.queries:
            out.append(f'\tfields->{what}_{name} = {QUERIES[what][1].format(name, extra)};\n')
        for a in self.values:
            value = f'node_ints(node, {a.name})' if a.type.startswith('int[]') else \
                f'node_string({a.name})' if a.type.startswith('str') else a.name
            out.append(f'\tfields->{a.name} = {value};\n')
        return ''.join(out)

    def fill_edges(self):
        out = []
        for f in self.formulas:
            call = f'node_list_edges(node, {f.index}, {f.arg.name})' if f.is_list else \
                f'node_edge(node, {f.index}, {f.arg.name})'
            out.append(f'\tif (need{f.index})\n\t\t{call};\n')
        return ''.join(out)

    def save(self, name, value, copy=False):
        cond = ' || '.join(f'need{f.index}' for f in self.formulas if name in f.saved)
        if '||' in cond:
            cond = f'({cond})'
        fn = 'node_save_copy' if copy else 'node_save'
        slot = self.saved.index(name)
        return (f'\tif ({cond} && {fn}(node, {slot}, {value}, {self.source(name)}) < 0)\n'
                '\t\tgoto failed;\n')

    def save_list(self):
        """Saves the list that formulas read, if there is one."""
        name = self.saved_list
        if not name:
            return ''
        cond = ' || '.join(f'need{f.index}' for f in self.formulas if name in f.lists)
        first = self.edge.get(name, 'SAVED_CONSTANT')
        return (f'\tfields->{name} = node_list(node, {name}.len);\n'
                f'\tif (({cond}) && node_save_list(node, {len(self.saved)}, {name}, {first}) < 0)\n'
                '\t\tgoto failed;\n')

    def is_result(self, name):
        return name in self.returns and name not in [a.name for a in self.args]

    def record_function(self, form):
        names = ', '.join([n for _, n, _ in form.c_args()] + [n for _, n in form.c_results()])
        results = [f'(*{n})' for _, n in form.c_results()] if form.multi else ['result']
        described = results[:len(self.outputs)]
        unfit = '' if form.optional_results else f' || !differentiable({described[0]})'
        out = [f'static {form.ctype}record_{form.id}({form.params()})\n{{\n',
               '\tstruct tensor_thread *th = thread();\n\tuint32_t exclude = th->modes.exclude;\n',
               '\tint err = 0;\n', self.needs(form)]
        if self.has_fields:
            out.append(f'\tstruct {self.node} *fields;\n')
        out.append('\ttensor_node *node;\n')
        if not form.multi:
            out.append('\ttensor *result;\n')
        out.append('\n' + self.refusals(form))
        out.append('\tth->modes.exclude = exclude | AUTOGRAD_BIT;\n')
        if form.multi:
            out.append(f'\terr = call_{form.id}({names});\n\tth->modes.exclude = exclude;\n'
                       f'\tif (err < 0 || !({self.any}){unfit})\n\t\treturn err;\n')
        else:
            out.append(f'\tresult = call_{form.id}({names});\n\tth->modes.exclude = exclude;\n')
            if form.kind == 'view':
                out.append('\tif (unlikely(!th->modes.grad_enabled))\n'
                           '\t\treturn no_grad_view(result);\n')
            plain = f'view_inherit({form.args[0].name}, result)' if form.kind == 'view' else 'result'
            out.append(f'\tif (!result || !({self.any}) || !differentiable(result))\n'
                       f'\t\treturn {plain};\n')
        out.append(self.new_node(described))
        out.append('\tif (unlikely(!node))\n\t\tgoto failed;\n')
        out.append(self.fill_edges() + self.fill_values() + self.save_list())
        for s in self.saved:
            value = s
            if self.is_result(s):
                value = results[self.returns.index(s)]
            out.append(self.save(s, value))
        if form.optional_results:
            for i, d in enumerate(described):
                out.append(f'\tif ({d} && node_result_more(node, {i}, {d}) < 0)\n\t\tgoto failed;\n')
            out.append('\tnode_put(node);\n')
        else:
            out.append(f'\tnode_result(node, {described[0]});\n')
            for i, d in enumerate(described[1:], 1):
                out.append(f'\tif (node_result_more(node, {i}, {d}) < 0)\n'
                           '\t\tgoto failed_later;\n')
        out.append(f'\treturn {"0" if form.multi else "result"};\nfailed:\n\tnode_put(node);\n')
        if len(described) > 1 and not form.optional_results:
            out.append('failed_later:\n')
        out += [f'\ttensor_put({r});\n' for r in results]
        if form.multi:
            out += [f'\t{r} = NULL;\n' for r in results]
        out.append(f'\treturn {self.failed(form)};\n}}\n\n')
        return ''.join(out)

    def record_inplace(self, form):
        """Inputs are saved before they are overwritten."""
        if self.formulas[0].arg.name != 'self':
            fail(self.entry, f'{self.name}: an in-place form needs a formula for self')
        names = ', '.join(n for _, n, _ in form.c_args())
        out = [f'static {form.ctype}record_{form.id}({form.params()})\n{{\n',
               '\tstruct tensor_thread *th = thread();\n\tuint32_t exclude = th->modes.exclude;\n',
               '\tint err = 0;\n', self.needs(form)]
        if self.has_fields:
            out.append(f'\tstruct {self.node} *fields;\n')
        out.append('\ttensor_node *node = NULL;\n\n' + self.refusals(form))
        out.append('\tif (th->modes.grad_enabled && '
                   f'inplace_check(&entry_{form.id}, self, {self.any}) < 0)\n\t\treturn NULL;\n')
        out.append('\tth->modes.exclude = exclude | AUTOGRAD_BIT;\n')
        out.append(f'\tif (!({self.any}) || !differentiable(self))\n\t\tgoto call;\n')
        out.append(self.new_node(['self']))
        out.append('\tif (unlikely(!node))\n\t\tgoto failed;\n')
        out.append(self.fill_edges() + self.fill_values() + self.save_list())
        for s in self.saved:
            if not self.is_result(s):
                out.append(self.save(s, s, copy=s == 'self'))
        out.append(f'call:\n\tif (!call_{form.id}({names}))\n\t\tgoto failed;\n'
                   '\tth->modes.exclude = exclude;\n\tif (!node)\n\t\treturn self;\n')
        for s in self.saved:
            if self.is_result(s):
                out.append(self.save(s, 'self'))
        out.append('\treturn inplace_result(node, self) < 0 ? NULL : self;\nfailed:\n'
                   '\tth->modes.exclude = exclude;\n\tnode_put(node);\n\treturn NULL;\n}\n\n')
        return ''.join(out)


def record_out(form, inputs):
    """out= records nothing: it fails if a gradient is required."""
    names = ', '.join(n for _, n, _ in form.c_args())
    failed = Derivative.failed(form)
    result = 'int' if form.multi else 'tensor *'
    out = [f'static {form.ctype}record_{form.id}({form.params()})\n{{\n',
           '\tstruct tensor_thread *th = thread();\n\tuint32_t exclude = th->modes.exclude;\n',
           f'\t{result}{" " if form.multi else ""}done;\n\n']
    for a in form.args:
        if a.is_tensor and (inputs or a in form.outs):
            out.append(f'\tif (formula_check_out(th, "{form.name}", "{a.name}", {a.name}) < 0)\n'
                       f'\t\treturn {failed};\n')
        elif a.type in LISTS and inputs:
            out.append(f'\tfor (int64_t i = 0; i < {a.name}.len; i++)\n'
                       f'\t\tif (formula_check_out(th, "{form.name}", "{a.name}", {a.name}.data[i]) < 0)\n'
                       f'\t\t\treturn {failed};\n')
    out.append(f'\tth->modes.exclude = exclude | AUTOGRAD_BIT;\n\tdone = call_{form.id}({names});\n'
               '\tth->modes.exclude = exclude;\n\treturn done;\n}\n\n')
    return ''.join(out)


def check_complete(heads, entries):
    """Every operator is differentiable, composite or listed as nondifferentiable."""
    known = {}
    for entry in entries:
        for name in [entry['name']] if 'name' in entry else entry['nondifferentiable']:
            if name not in heads:
                fail(entry, f'{name}: there is no such operator')
            if name in known:
                fail(entry, f'{name} was declared at {known[name].place}')
            if heads[name][0].kind in CALLS:
                fail(entry, f'{name} is composite: it is differentiated through the operators that it calls')
            known[name] = entry
    for head, forms in heads.items():
        if head not in known and forms[0].kind not in CALLS:
            fail(forms[0].entry, f'{head} has no derivative in lib/schema/derivatives and is not listed as nondifferentiable')


def nodes(entries, heads):
    """The C file of one family, without its includes."""
    out, rows = [], []
    plain = [(e, name) for e in entries for name in e.get('nondifferentiable', [])]
    for d in derivatives_of(entries, heads):
        forms = d.forms
        out += [d.struct(), d.apply(), d.type()] if any(f.variant != 'out' for f in forms) else []
        for form in forms:
            if form.variant == 'function':
                out.append(d.record_function(form))
            elif form.variant == 'inplace':
                out.append(d.record_inplace(form))
            else:
                out.append(record_out(form, True))
            rows.append(form.id)
    for entry, name in plain:
        for form in heads[name]:
            if form.variant == 'out':
                out.append(record_out(form, False))
                rows.append(form.id)
            elif form.variant == 'inplace':
                fail(entry, f'{form.name} changes a tensor in place: give it a formula')
    out.append('INIT(INIT_AUTOGRAD) static void fill_autograd(void)\n{\n')
    out += [f'\tdispatch_fill(&entry_{r}, AUTOGRAD_BIT, (tensor_kernel)record_{r});\n' for r in rows]
    out.append('}\n')
    return ''.join(out)


def check_functions(families, heads, known):
    """Every function that a formula calls exists."""
    for d in [d for entries in families.values() for d in derivatives_of(entries, heads)]:
        for f in d.formulas:
            for name in re.findall(r'([A-Za-z_]\w*)\s*\(', f.text):
                if name not in known:
                    fail(d.entry, f'{d.name}: there is no function {name}()', f.arg.name)


def derivatives_of(entries, heads):
    """A Derivative for each entry of one family that has formulas."""
    found, taken = [], set()
    for entry in entries:
        if 'name' not in entry:
            continue
        d = Derivative(entry, heads[entry['name']])
        if d.node in taken:  # bernoulli and bernoulli.Tensor
            d.node = camel(entry['name'].replace('.', '_')) + 'Backward'
        taken.add(d.node)
        found.append(d)
    return found


def formulas_text(families, heads):
    """A line for each formula, for tests/unit/gradients: node, edge, operator, argument, place. A formula that only fails
    (formula_not_again() ...) has no line."""
    out, taken = [], {}
    for d in [d for entries in families.values() for d in derivatives_of(entries, heads)]:
        if d.node in taken:
            fail(d.entry, f'{d.name}: {d.node} is the node of {taken[d.node]}, too')
        taken[d.node] = d.name
        out += [f'{d.node} {f.index} {d.name} {f.arg.name} {d.entry.place}\n' for f in d.formulas
                if not f.text.startswith(REFUSALS)]
    return ''.join(out)


def with_includes(text, homes):
    """homes: {symbol: family whose header declares it}"""
    used = sorted({homes[name] for name in re.findall(r'\b\w+', text) if name in homes})
    return ''.join([NOTE, '#include "autograd/formulas/formulas.h"\n\n'] +
                   [f'#include "family/{family}.h"\n' for family in used] + ['\n', text])


def generate(ops, paths):
    """(file name, text) of every family."""
    heads = {}
    check_families(paths)
    families = {os.path.splitext(os.path.basename(path))[0]: read(path) for path in sorted(paths)}
    for op in ops:
        heads.setdefault(op.entry['func'].split('(')[0], []).append(op)
    for entries in families.values():
        for entry in entries:
            try:
                check(entry, DERIVATIVE, ('name', 'nondifferentiable'), FORMULA if 'name' in entry else None)
            except SchemaError as e:
                stop(entry, e)
    check_complete(heads, [entry for entries in families.values() for entry in entries])
    homes = {name: op.family for op in ops for name in symbols(op)}
    check_functions(families, heads, sources.formula_words().union(homes))
    return [(f'autograd_{family}.c', with_includes(nodes(entries, heads), homes))
            for family, entries in families.items()] + [('formulas.txt', formulas_text(families, heads))]
