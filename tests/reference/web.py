# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Writes the reference as HTML: a page for each family and guide, and an index. Pages load only local files."""
import html
import json
import os
import re

import markdown
import operators

STYLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'style.css')
SEARCH = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'search.js')


def anchor(name):
    return re.sub(r'\W', '-', name)


def rich(text, targets):
    """Converts inline marks to HTML. Links to guides become links to their pages, links to other files become text."""
    out = []
    for kind, part, target in markdown.inline(text):
        part = html.escape(part)
        if kind == 'code':
            page = targets.get(html.unescape(part).rstrip('()'))
            code = f'<code>{part}</code>'
            out.append(f'<a href="{page}">{code}</a>' if page else code)
        elif kind == 'strong':
            out.append(f'<strong>{part}</strong>')
        elif kind == 'link':
            page = targets.get(os.path.basename(target)) if target.endswith('.md') else target
            out.append(f'<a href="{html.escape(page)}">{part}</a>' if page else part)
        else:
            out.append(part)
    return ''.join(out)


def guide_body(text, targets):
    out = []
    for block in markdown.blocks(text):
        if block[0] == 'heading':
            out.append(f'<h{block[1]} id="{anchor(markdown.plain(block[2]).lower())}">{rich(block[2], targets)}</h{block[1]}>')
        elif block[0] == 'text':
            out.append(f'<p>{rich(block[1], targets)}</p>')
        elif block[0] == 'code':
            out.append('<pre><code>' + html.escape('\n'.join(block[2])) + '</code></pre>')
        elif block[0] == 'list':
            tag = 'ol' if block[1] else 'ul'
            out.append(f'<{tag}>' + ''.join(f'<li>{rich(item, targets)}</li>' for item in block[2]) + f'</{tag}>')
        else:
            head, rows = block[1][0], block[1][1:]
            out.append('<div class="wide"><table><tr>' + ''.join(f'<th>{rich(c, targets)}</th>' for c in head) + '</tr>')
            out += ['<tr>' + ''.join(f'<td>{rich(c, targets)}</td>' for c in row) + '</tr>' for row in rows]
            out.append('</table></div>')
    return '\n'.join(out)


def facts(entry):
    rows = [('Shapes', entry.words.shapes), ('Dtypes', entry.dtype_text()), ('Forms', entry.form_text()),
            ('Returns', entry.returns_text()), ('Errors', entry.words.errors), ('Gradient', entry.gradient_text()),
            ('Source', entry.source_text())]
    return '<dl>' + ''.join(f'<dt>{name}</dt><dd>{html.escape(text)}</dd>' for name, text in rows if text) + '</dl>'


def operator(entry):
    declarations = '\n'.join(line for _, text in entry.prototypes() for line in operators.wrapped(text, 96))
    out = [f'<section id="{anchor(entry.name)}"><h2>{html.escape(entry.name)}</h2>',
           f'<p>{html.escape(entry.words.doc)}</p>',
           f'<pre><code>{html.escape(declarations)}</code></pre>', facts(entry)]
    if entry.code:
        given = '\n'.join('// ' + line for line in entry.gives.split('\n'))
        out.append(f'<pre class="example"><code>{html.escape(entry.code)};\n<span>{html.escape(given)}</span></code></pre>')
    out.append(f'<p class="schema"><code>{html.escape(entry.op.text)}</code></p></section>')
    return '\n'.join(out)


class Site:
    def __init__(self, folder, entries, titles, guides, common):
        """guides: [(name, title, Markdown)]; titles: {family: sentence}; common: Markdown about all operators."""
        self.folder, self.entries, self.titles, self.guides, self.common = folder, entries, titles, guides, common
        self.families = sorted({entry.family for entry in entries})
        self.targets = {name: f'ops-{e.family}.html#{anchor(e.name)}' for e in reversed(entries) for name in e.functions}
        self.targets.update({f'{name}.md': f'{name}.html' for name, _, _ in guides})
        self.written = set()

    def navigation(self, here):
        def link(page, text):
            mark = ' aria-current="page"' if page == here else ''
            return f'<a href="{page}"{mark}>{html.escape(text)}</a>'
        return ('<nav>' + link('index.html', 'All operators') + '<h2>Guides</h2>' +
                ''.join(link(f'{name}.html', title) for name, title, _ in self.guides) + '<h2>Operators</h2>' +
                ''.join(link(f'ops-{family}.html', family) for family in self.families) + '</nav>')

    def write(self, page, title, body):
        if page in self.written:
            raise SystemExit(f'two pages are called {page}')
        self.written.add(page)
        with open(os.path.join(self.folder, page), 'w') as f:
            f.write('<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                    '<meta name="viewport" content="width=device-width, initial-scale=1">'
                    f'<title>{html.escape(title)} - libtensor</title><link rel="stylesheet" href="style.css">'
                    '<script src="names.js" defer></script><script src="search.js" defer></script></head>\n<body>'
                    '<header><a href="index.html">libtensor</a><div class="search"><input id="search" type="search" '
                    'placeholder="Search a name (press /)" aria-label="Search" autocomplete="off">'
                    f'<ul id="found"></ul></div></header>\n<div class="page">{self.navigation(page)}\n'
                    f'<main>{body}</main></div></body></html>\n')

    def family(self, family):
        entries = [e for e in self.entries if e.family == family]
        contents = ''.join(f'<li><a href="#{anchor(e.name)}">{html.escape(e.name)}</a></li>' for e in entries)
        sentence = html.escape(self.titles.get(family, ''))
        self.write(f'ops-{family}.html', f'Operators: {family}',
                   f'<h1>Operators: {family}</h1><p>{sentence[:1].upper() + sentence[1:]}.</p>'
                   f'<ul class="names">{contents}</ul>' + '\n'.join(operator(e) for e in entries))

    def index(self):
        out = ['<h1>Operators of libtensor</h1>', guide_body(self.common, self.targets)]
        for family in self.families:
            links = ''.join(f'<li><a href="ops-{family}.html#{anchor(e.name)}">{html.escape(e.name)}</a></li>'
                            for e in self.entries if e.family == family)
            out.append(f'<h2 id="{family}"><a href="ops-{family}.html">{family}</a></h2>'
                       f'<p>{html.escape(self.titles.get(family, "").capitalize())}.</p><ul class="names">{links}</ul>')
        self.write('index.html', 'Operators', '\n'.join(out))

    def names(self):
        rows = [[name, page] for name, page in sorted(self.targets.items()) if not name.endswith('.md')]
        rows += [[e.name, f'ops-{e.family}.html#{anchor(e.name)}'] for e in self.entries]
        rows += [[title, f'{name}.html'] for name, title, _ in self.guides]
        with open(os.path.join(self.folder, 'names.js'), 'w') as f:
            f.write('const NAMES = ' + json.dumps(rows, separators=(',', ':')) + ';\n')

    def build(self):
        os.makedirs(self.folder, exist_ok=True)
        for source in (STYLE, SEARCH):
            with open(source) as f, open(os.path.join(self.folder, os.path.basename(source)), 'w') as to:
                to.write(f.read())
        self.names()
        self.index()
        for family in self.families:
            self.family(family)
        for name, title, text in self.guides:
            self.write(f'{name}.html', title, guide_body(text, self.targets))
        return len(self.written)
