# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the reference as man pages. Section 3 has a page for each base name of an operator; pages of its other
functions refer to it by .so. Section 7 has the guides."""
import os
import re

import markdown
import operators


def escape(text):
    for char, by in (('\\', '\\e'), ('-', '\\-'), ('`', '\\(ga'), ('^', '\\(ha'), ('~', '\\(ti')):
        text = text.replace(char, by)
    return text


def prose(text):
    """Escapes a line of text for troff: a hyphen stays one, except as a minus sign or in an option."""
    out = text.replace('\\', '\\e').replace('`', '\\(ga').replace('^', '\\(ha').replace('~', '\\(ti')
    out = re.sub(r'(?<![A-Za-z])-', r'\\-', out)
    return '\\&' + out if out.startswith(('.', "'")) else out


def literal(lines):
    out = []
    for line in lines:
        line = escape(re.sub(r'(\S) {2,}(/[*/])', r'\1  \2', line).expandtabs(4)).replace("'", '\\(aq')
        out.append('\\&' + line if line.startswith(('.', "\\(aq")) else line)
    return '.in +4n\n.nf\n' + '\n'.join(out) + '\n.fi\n.in\n'


def rich(text):
    """Converts inline marks to fonts. A link becomes its text, or the name of the man page to which it refers."""
    out = []
    for kind, part, target in markdown.inline(text):
        if kind == 'code':
            out.append(f'\\fB{escape(part)}\\fP')
        elif kind == 'strong':
            out.append(f'\\fI{prose(part)}\\fP')
        elif kind == 'link':
            page = re.fullmatch(r'([\w-]+)\.md(#.*)?', target)
            out.append(prose(part) + (f' (\\fBtensor_{page_name(page.group(1))}\\fP(7))' if page else ''))
        else:
            out.append(prose(part))
    line = ''.join(out)
    return '\\&' + line if line.startswith(('.', "'")) else line


def page_name(guide):
    return escape(guide.replace('-', '_')).replace('\\-', '-')


def heading(name, section, version):
    return f'.TH {name} {section} "" "libtensor {version}" "Library Functions Manual"\n.ad l\n.nh\n'


def paragraph(term, text):
    return f'.TP\n{term}\n{prose(text)}\n' if text else ''


def about(entry):
    """The section of one entry of a page."""
    return (f'.SS {escape(entry.name)}\n{prose(entry.words.doc)}\n' + paragraph('Shapes', entry.words.shapes) +
            paragraph('Dtypes', entry.dtype_text()) + paragraph('Errors', entry.words.errors) +
            paragraph('Gradient', entry.gradient_text()) + paragraph('Source', entry.source_text()))


def first_sentence(text):
    return re.split(r'(?<=[a-z0-9)])[.;:] ', text)[0].rstrip('.')


def synopsis(group):
    lines = ['#include <tensor/tensor.h>', '']
    for entry in group.entries:
        for _, declaration in entry.prototypes():
            lines += operators.wrapped(declaration, 72)
    return '.SH SYNOPSIS\n.nf\n' + '\n'.join(escape(line) for line in lines) + '\n.fi\n.PP\nLink with \\fB\\-ltensor\\fP.\n'


def returned(group):
    """The section RETURN VALUE, without repetitions."""
    texts = list(dict.fromkeys(entry.returns_text() for entry in group.entries))
    forms = list(dict.fromkeys(entry.form_text() for entry in group.entries if entry.form_text()))
    return '.SH "RETURN VALUE"\n' + '\n.PP\n'.join(prose(text) for text in texts + forms) + '\n'


def examples(group):
    out = []
    for entry in group.entries:
        if entry.code:
            out.append(literal(operators.wrapped(entry.code + ';', 72) + ['// ' + line for line in entry.gives.split('\n')]))
    if not out:
        return ''
    return ('.SH EXAMPLES\nvector(), ints() and bools() make tensors of one dimension, matrix(rows, ...) of two,\n'
            'counting(2, 3) one of that shape with 0, 1, 2 ... in it.\n.PP\n' + '.PP\n'.join(out))


def operator(group, version):
    names = ', '.join('\\%' + escape(name) for name in group.functions)
    head = group.entries[0]
    return (heading(group.page, 3, version) + f'.SH NAME\n{names} \\- {prose(first_sentence(head.words.doc))}\n' +
            synopsis(group) + '.SH DESCRIPTION\n' + ''.join(about(entry) for entry in group.entries) + returned(group) +
            '.SH ERRORS\nBesides those above: EOPNOTSUPP where a dtype, layout or device has no kernel, ENOMEM, and EACCES\n'
            'for writing to read\\-only memory.\n\\fB\\%tensor_last_error\\fP()\n'
            'has the code and a text; a failed call changes nothing.\n' + examples(group) +
            '.SH "SEE ALSO"\n.BR tensor_errors (7),\n.BR tensor_scopes (7),\n.BR tensor_dtypes (7),\n.BR tensor_views (7)\n')


def guide_table(rows):
    """Converts a table to paragraphs: the first cell of a row, then the others, with their column heads if several."""
    head, out = rows[0], []
    for row in rows[1:]:
        rest = [rich(cell) if len(row) == 2 else f'{rich(name)}: {rich(cell)}'
                for name, cell in zip(head[1:], row[1:]) if cell]
        out.append(f'.TP\n{rich(row[0])}\n' + '\n.br\n'.join(rest) + '\n')
    return ''.join(out)


def guide_blocks(text):
    out = []
    for block in markdown.blocks(text):
        if block[0] == 'heading' and block[1] > 1:
            out.append(f'.S{"H" if block[1] == 2 else "S"} "{rich(block[2]).replace(chr(34), "")}"\n')
        elif block[0] == 'text':
            out.append(f'.PP\n{rich(block[1])}\n')
        elif block[0] == 'code':
            out.append('.PP\n' + literal(block[2]))
        elif block[0] == 'list':
            for i, item in enumerate(block[2]):
                out.append(f'.IP {f"{i + 1}." if block[1] else chr(92) + "(bu"} 3\n{rich(item)}\n')
        elif block[0] == 'table':
            out.append(guide_table(block[1]))
    return re.sub(r'(\.S[HS] [^\n]*\n)\.PP\n', r'\1', ''.join(out))


def guide(name, title, text, version):
    page = f'tensor_{page_name(name)}'
    body = guide_blocks(text)
    if not body.startswith('.S'):
        body = '.SH DESCRIPTION\n' + re.sub(r'^\.PP\n', '', body)
    return (heading(page, 7, version) + f'.SH NAME\n{page} \\- {prose(title[0].lower() + title[1:])}\n' + body +
            '.SH "SEE ALSO"\n.BR tensor_scopes (7),\n.BR tensor_errors (7),\n.BR tensor_buffer (3),\n.BR tensorstat (1)\n')


def write(folder, file, text, written):
    if file in written:
        raise SystemExit(f'two man pages are called {file}')
    written.add(file)
    with open(os.path.join(folder, file), 'w') as f:
        f.write(text)


def build(folder, groups, guides, version, taken):
    """taken: names of hand-written pages in man/. Returns the number of pages, links not counted."""
    os.makedirs(folder, exist_ok=True)
    written = set(taken)
    for group in groups:
        write(folder, f'{group.page}.3', operator(group, version), written)
    for group in groups:
        for name in group.functions:
            if name != group.page:
                write(folder, f'{name}.3', f'.so man3/{group.page}.3\n', written)
    for name, title, text in guides:
        write(folder, f'tensor_{page_name(name)}.7', guide(name, title, text, version), written)
    return len(groups) + len(guides)
