# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes docs/conformance.md from the report of a complete run: figures by family and dtype.

    page.py build/conformance/report.json "$(git log -1 --format='%h of %as')" COMMAND > docs/conformance.md

programs.json and array_api.json in the same folder, if they exist, add a section each. "why" in programs.json is a
sentence about the programs that differ.
"""
import glob
import json
import os
import re
import sys
import time

import boxed

HERE = os.path.dirname(os.path.abspath(__file__))
TOP = os.path.join(HERE, '..', '..')
REFUSALS = [
    ('geqrf', 'self', "the derivative for 'geqrf' is not implemented."),
    ('_embedding_bag_dense_backward', 'grad, per_sample_weights',
     "the derivative for '_embedding_bag_dense_backward' is not implemented."),
    ('_embedding_bag_per_sample_weights_backward', 'grad, weight',
     'derivative for aten::_embedding_bag_per_sample_weights_backward is not implemented'),
    ('native_layer_norm_backward', 'mean, rstd',
     "the derivative for 'native_layer_norm_backward mean' is not implemented."),
    ('native_batch_norm_backward', 'save_mean, save_invstd',
     "the derivative for 'native_batch_norm_backward save_invstd' is not implemented."),
    ('native_group_norm_backward', 'mean, rstd', 'derivative for aten::native_group_norm_backward is not implemented'),
    ('scatter.reduce, scatter.value_reduce', 'self', 'derivative for aten::scatter is not implemented'),
    ('resize_', 'self', 'cannot resize variables that require grad')]
KINDS = {'forward': 'Results', 'grad': 'Gradients', 'error': 'Refusals'}


def families():
    """{base name of an operator: the file that declares it}"""
    out = {}
    for path in sorted(glob.glob(os.path.join(TOP, 'lib', 'schema', 'ops', '*', '*.yaml'))):
        with open(path) as f:
            for name in re.findall(r'func:\s*"?(\w+)', f.read()):
                out.setdefault(name, os.path.basename(path)[:-len('.yaml')])
    return out


def family_of(operator, known):
    base = operator.split('.')[0]
    return known.get(base) or known.get(base.rstrip('_')) or 'other'


def percent(good, calls):
    """Rounded down: 100 means all of them."""
    return f'{int(1000 * good / calls) / 10:.1f}' if good < calls else '100'


def figures(rows, key):
    out = {}
    for r in rows:
        f = out.setdefault(key(r), {'passed': 0, 'explained': 0, 'failed': 0, 'na': 0, 'bits': 0})
        for k in f:
            f[k] += r[k]
    return out


def calls(f):
    return f['passed'] + f['explained'] + f['failed']


def matrix(rows, known):
    by = figures(rows, lambda r: (family_of(r['operator'], known), r['dtype']))
    whole = figures(rows, lambda r: family_of(r['operator'], known))
    dtypes = [d for d in boxed.DTYPES if any(k[1] == d for k in by)]
    yield '| family | calls | ' + ' | '.join(dtypes) + ' |'
    yield '|---|---:|' + '---:|' * len(dtypes)
    for family, f in sorted(whole.items()):
        if calls(f):
            cells = [by.get((family, d)) for d in dtypes]
            yield f'| {family} | {calls(f)} | ' + ' | '.join(
                percent(c['passed'], calls(c)) if c and calls(c) else '' for c in cells) + ' |'


def page(report, commit, command):
    known = families()
    yield '# Conformance with PyTorch\n'
    yield f'PyTorch {report["torch"]}, library at commit {commit}, run on {time.strftime("%Y-%m-%d")}:\n'
    yield f'    {command}\n'
    yield ('Every entry of PyTorch\'s operator table (op_db) is run with its sample inputs, with the same inputs '
           'with gaps in memory,\nand with its error inputs, for every dtype that both libraries have. For every '
           'operator that PyTorch dispatches\nmeanwhile, and for its in-place and out forms, the operator of '
           'libtensor is called with the same arguments.\n\nDtype, shape and values must agree: the values within '
           'PyTorch\'s tolerances, or nearer than PyTorch\'s to the result in a\nwider dtype. Views must also have '
           'the same strides and share memory, and error inputs must fail with a message.\n\nGradients are compared '
           'up to what is not unique (`tests/conformance/ambiguous.py`): the phase of eigenvectors and singular\n'
           'vectors, the order of equal elements, and the triangle of a factor that is not read.\n')
    yield '| | calls | agree | to the bit | explained | unexplained | not applicable |'
    yield '|---|---:|---:|---:|---:|---:|---:|'
    for kind, title in KINDS.items():
        f = figures([r for r in report['rows'] if r['kind'] == kind], lambda r: 0).get(0)
        if f:
            yield (f'| {title} | {calls(f)} | {100 * f["passed"] / calls(f):.2f} % | {f["bits"]} | '
                   f'{f["explained"]} | {f["failed"]} | {f["na"]} |')
    yield f'\n{report["samples"]} samples of {report["entries"]} entries; {report["leaks"]} leaks.\n'
    for kind, title in list(KINDS.items())[:2]:
        yield f'## {title}: percentage that agrees, by family and dtype\n'
        yield from matrix([r for r in report['rows'] if r['kind'] == kind], known)
        yield ''
    yield ('## Explained differences\n\n'
           '`tests/conformance/explained.py` lists them; any other difference fails the run.\n')
    yield '| calls | operators | dtypes | reason |\n|---:|---|---|---|'
    groups = {}
    for f in report['failures']:
        g = groups.setdefault(f['why'] or f'**no explanation**: {f["message"][:80]}', [0, set(), set()])
        g[0] += f['count']
        g[1].add(f['operator'])
        g[2].update(f['dtypes'])
    for why, (n, ops, dtypes) in sorted(groups.items(), key=lambda g: -g[1][0]):
        ops = sorted(ops)
        named = ', '.join(f'`{o}`' for o in ops[:6]) + (f' and {len(ops) - 6} more' if len(ops) > 6 else '')
        yield f'| {n} | {named} | {" ".join(d for d in boxed.DTYPES if d in dtypes)} | {why} |'
    yield from refusals()
    yield '\n## Not applicable\n\n| calls | operator and reason |\n|---:|---|'
    for n in report['notes'][:16]:
        yield f'| {n["count"]} | `{n["operator"]}` ({n["kind"]}): {n["message"].splitlines()[0][:100]} |'
    yield '\n## Missing operators of PyTorch\'s table\n'
    names = [k for k, _ in sorted(report['missing'].items(), key=lambda x: -x[1])]
    yield f'{len(names)}; the most frequent ones:\n' + ', '.join(f'`{n}`' for n in names[:60]) + '.'


def refusals():
    yield '\n## Operators without a derivative\n'
    yield 'As in PyTorch, whose error is in the last column:\n'
    yield '| operator | argument | PyTorch |\n|---|---|---|'
    for row in REFUSALS:
        yield '| `%s` | %s | %s |' % row


def programs(f):
    yield '\n## Random programs\n\n    make conformance-programs PROGRAMS=%d SEED=%d\n' % (f['programs'], f['seed'])
    yield ('PyTorch and libtensor run programs of 5 to 30 statements (operators, views, in-place changes, no_grad, '
           'detach). Values,\nthe statements that fail, and first and second derivatives of all variables are '
           'compared.\n')
    yield '| programs | statements | differ |\n|---:|---:|---:|'
    yield f'| {f["programs"]} | {f["statements"]} | {f["differ"]} ({100 * f["differ"] / f["programs"]:.3f} %) |'
    if f.get('why'):
        yield '\n' + f['why']


def array_api(f):
    yield '\n## Array API\n\n    make test-array-api\n'
    yield (f'The test suite of the Python array API standard (data-apis/array-api-tests at {f["suite"]}), run on '
           'the\nnamespace in `tests/array_api`.\n')
    yield '| | passed | failed | skipped |\n|---|---:|---:|---:|'
    for name, r in f['rows'].items():
        yield f'| {name} | {r["passed"]} | {r["failed"]} | {r["skipped"]} |'


def beside(report, name):
    path = os.path.join(os.path.dirname(report), name)
    if not os.path.exists(path):
        return None
    with open(path) as f:
        return json.load(f)


def main():
    with open(sys.argv[1]) as f:
        report = json.load(f)
    print('\n'.join(page(report, sys.argv[2], ' '.join(sys.argv[3:]))))
    for section, name in ((programs, 'programs.json'), (array_api, 'array_api.json')):
        f = beside(sys.argv[1], name)
        if f:
            print('\n'.join(section(f)))


if __name__ == '__main__':
    main()
