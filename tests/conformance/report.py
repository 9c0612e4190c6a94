# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the report of a conformance run: operator x dtype, then the failures with their reasons."""
import json
import os
import re

import boxed
from replay import COUNTS


def sort_of(message):
    """The text of a failure without its details, to group failures."""
    text = message.split('; PyTorch: ')[-1].split(' -- ')[0]
    text = re.sub(r'\b(bool|u8|i8|i16|i32|i64|u16|u32|u64|f8_e4m3fn|f8_e5m2|f16|bf16|f32|f64|c64|c128)\b', 'dtype',
                  text)
    return ''.join('#' if c.isdigit() else c for c in text[:50])


def gather(results):
    rows, faults, missing, notes = {}, {}, {}, {}
    for r in results:
        for x in r['rows']:
            row = rows.setdefault((x['operator'], x['kind'], x['dtype']),
                                  dict.fromkeys(COUNTS, 0))
            for k in row:
                row[k] += x[k]
        for x in r['failures']:
            key = (x['operator'], x['kind'], sort_of(x['message']), x['why'])
            f = faults.setdefault(key, dict(x, dtypes=[], count=0))
            f['count'] += x['count']
            if x['dtype'] not in f['dtypes']:
                f['dtypes'].append(x['dtype'])
        for x in r['notes']:
            key = (x['operator'], x['kind'], x['message'][:50])
            n = notes.setdefault(key, dict(x, count=0))
            n['count'] += x['count']
        for k, n in r['missing'].items():
            missing[k] = missing.get(k, 0) + n
    return rows, faults, missing, notes


def total(rows, kind):
    pick = [r for (_, k, _), r in rows.items() if k == kind]
    return {k: sum(r[k] for r in pick) for k in COUNTS}


def calls(r):
    return r['passed'] + r['explained'] + r['failed']


def cell(r):
    if not r or not calls(r):
        return 'n/a' if r and r['na'] else '.'
    return f'{r["passed"]}' if r['passed'] == calls(r) else f'{r["passed"]}/{calls(r)}'


def table(rows, kind, dtypes):
    lines = [f'{"operator":34s}' + ''.join(f'{d:>10s}' for d in dtypes)]
    for op in sorted({o for o, k, _ in rows if k == kind}):
        lines.append(f'{op:34s}' + ''.join(f'{cell(rows.get((op, kind, d))):>10s}' for d in dtypes))
    return lines


def percent(t):
    n = calls(t)
    return f'{100 * t["passed"] / n:.2f} %' if n else 'none'


def device_line(totals):
    t = {k: sum(totals[kind][k] for kind in ('forward', 'grad', 'error')) for k in COUNTS}
    n = calls(t)
    rest = t['passed'] - t['fallback']
    return f'device   {t["passed"]} of the {n} calls that the CPU passes ({percent(t)}), {rest} of them without the ' \
           f'fallback to the CPU ({100 * rest / max(n, 1):.2f} %)'


def line(f):
    return f'{f["count"]:6d}  {f["operator"]} ({f["kind"]}; {",".join(f["dtypes"])}; entry ' \
           f'{f["entry"]}): {f["message"]}'


def write(results, lib, args):
    rows, faults, missing, notes = gather(results)
    text = ['Calls that agreed with PyTorch (a slash is followed by the number of calls; n/a: not expressible).', '']
    text += table(rows, 'forward', args.dtypes)
    text += ['', 'Gradients', ''] + table(rows, 'grad', [d for d in args.dtypes if d in args.grad])
    text += ['', 'Calls that PyTorch refuses', '']
    text += table(rows, 'error', args.dtypes)
    order = sorted(faults.values(), key=lambda f: -f['count'])
    failures = [line(f) for f in order if not f['why']]
    text += ['', 'Failures without an explanation: count, operator, dtypes, first message', '']
    text += failures
    text += ['', 'Explained differences (explained.py)']
    for why in sorted({f['why'] for f in order if f['why']}):
        text += ['', why + ':', ''] + [line(f) for f in order if f['why'] == why]
    text += ['', 'Not applicable: count, operator, reason', '']
    text += [f'{n["count"]:6d}  {n["operator"]} ({n["kind"]}, {n["dtype"]}): {n["message"]}'
             for n in sorted(notes.values(), key=lambda n: -n['count'])]
    seen = {o for o, _, _ in rows}
    never = sorted(o for o in lib.ops if o not in seen)
    if not args.operators:
        text += ['', 'Operators of libtensor that no sample called', '', ' '.join(never)]
        text += ['', "Missing operators of PyTorch's table: calls, name", '']
        text += [f'{n:6d}  {k}' for k, n in sorted(missing.items(), key=lambda x: -x[1])]
    totals = {k: total(rows, k) for k in ('forward', 'grad', 'error', 'leak')}
    summary = []
    for k, t in totals.items():
        if k == 'leak':
            summary.append(f'leaks    in {t["failed"]} of the entries x dtypes')
            continue
        summary.append(f'{k:8s} {t["passed"]} of {calls(t)} agree ({percent(t)}), '
                       f'{t["explained"]} differ for a known reason, {t["failed"]} for none; '
                       f'{t["na"]} not applicable; {t["bits"]} to the bit, '
                       f'{t["closer"]} nearer to the exact result, {t["layout"]} in other strides')
    if not lib.is_host:
        summary.append(device_line(totals))
    ops = {o for o in seen if o in lib.ops}
    bad = {o for (o, _, _), r in rows.items() if r['failed']}
    summary.append(f'operators: {len(ops)} of {len(lib.ops)} called, {len(ops - bad)} without a '
                   f'failure; {sum(r["samples"] for r in results)} samples of '
                   f'{len({r["entry"] for r in results})} entries')
    text += [''] + summary
    os.makedirs(args.out, exist_ok=True)
    with open(os.path.join(args.out, 'report.txt'), 'w') as f:
        f.write('\n'.join(text) + '\n')
    with open(os.path.join(args.out, 'report.json'), 'w') as f:
        json.dump(dict(torch=args.torch, samples=sum(r['samples'] for r in results),
                       entries=len({r['entry'] for r in results}), leaks=totals['leak']['failed'],
                       notes=sorted(notes.values(), key=lambda n: -n['count']),
                       totals=totals, missing=missing, never=never, failures=order,
                       rows=[dict(operator=o, kind=k, dtype=d, **r)
                             for (o, k, d), r in sorted(rows.items())]), f, indent=0)
    if args.operators:
        print('\n'.join(table(rows, 'forward', args.dtypes)))
    print('\n'.join(failures if args.verbose else failures[:40]))
    print('\n'.join(summary))
    with open(os.path.join(args.out, 'table.tsv'), 'w') as f:
        f.write('\t'.join(('operator', 'kind', 'dtype') + COUNTS) + '\n')
        f.writelines('\t'.join([o, k, d] + [str(r[c]) for c in COUNTS]) + '\n'
                     for (o, k, d), r in sorted(rows.items()))
    t = {k: sum(x[k] for x in totals.values()) for k in COUNTS}
    print(f'{t["passed"]} passed, {t["failed"]} failed, {t["explained"]} explained, '
          f'{t["na"]} skipped')
    results_dir = os.path.join(os.path.dirname(args.out) or '.', 'results')
    os.makedirs(results_dir, exist_ok=True)
    if not args.operators:
        with open(os.path.join(results_dir, 'conformance.tally'), 'w') as f:
            f.write(f'{t["passed"]} {t["failed"]} {t["na"] + t["explained"]}\n')
    return 1 if t['failed'] else 0
