# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Reads the part of Markdown that docs/reference uses.

Blocks: ('heading', level, text), ('text', text), ('code', language, lines), ('list', ordered, [text]),
('table', [[cell]]) with the head as first row. Text keeps its inline marks; inline() splits it into
(kind, text, target) with the kinds text, code, strong and link.
"""
import re

INLINE = re.compile(r'`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\(([^)\s]+)\)')
ITEM = re.compile(r'(?:[-*]|(\d+)\.) +(.*)')


def cells(line):
    return [cell.strip() for cell in re.split(r'(?<!\\)\|', line.strip().strip('|'))]


def blocks(text):
    out, lines, i = [], text.split('\n'), 0
    while i < len(lines):
        line = lines[i]
        item = ITEM.match(line)
        if not line.strip() or line.startswith('<!--'):
            i += 1
        elif line.startswith('```'):
            end = lines.index('```', i + 1)
            out.append(('code', line[3:].strip(), lines[i + 1:end]))
            i = end + 1
        elif line.startswith('#'):
            out.append(('heading', len(line) - len(line.lstrip('#')), line.lstrip('#').strip()))
            i += 1
        elif line.startswith('|'):
            rows = []
            while i < len(lines) and lines[i].startswith('|'):
                rows.append(cells(lines[i]))
                i += 1
            out.append(('table', rows[:1] + rows[2:]))
        elif item:
            items = []
            while i < len(lines) and (ITEM.match(lines[i]) or lines[i].startswith('  ')):
                found = ITEM.match(lines[i])
                if found:
                    items.append(found.group(2))
                else:
                    items[-1] += ' ' + lines[i].strip()
                i += 1
            out.append(('list', bool(item.group(1)), items))
        else:
            words = []
            while i < len(lines) and lines[i].strip() and not lines[i].startswith(('```', '#', '|', '- ')):
                words.append(lines[i].strip())
                i += 1
            out.append(('text', ' '.join(words)))
    return out


def inline(text):
    at = 0
    for m in INLINE.finditer(text):
        if m.start() > at:
            yield 'text', text[at:m.start()], None
        if m.group(1):
            yield 'code', m.group(1), None
        elif m.group(2):
            yield 'strong', m.group(2), None
        else:
            yield 'link', m.group(3), m.group(4)
        at = m.end()
    if at < len(text):
        yield 'text', text[at:], None


def plain(text):
    return ''.join(part for _, part, _ in inline(text))


def title(text):
    return next(plain(block[2]) for block in blocks(text) if block[0] == 'heading')
