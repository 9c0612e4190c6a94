# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Reads files of entries and checks them: which YAML they may use, and which fields an entry has with which values. Every
error is file:line: message, where the line is that of the field.

The tables OPERATOR and DERIVATIVE have a Field for each field; the modules schema and derivatives describe their meaning.
"""
import re
import sys
import unicodedata
from collections import namedtuple

import yaml

import reference

WORD = r'[A-Za-z_][A-Za-z0-9_]*'
OPERATOR_NAME = rf'{WORD}(\.[A-Za-z0-9_]+)?'
# Deeper than any entry: a list of entries, an entry, a field, its value.
DEPTH = 4

KEYS = {'CPU': 'TENSOR_KEY_CPU', 'CUDA': 'TENSOR_KEY_CUDA',
        'SparseCPU': 'TENSOR_KEY_SPARSE_CPU', 'SparseCUDA': 'TENSOR_KEY_SPARSE_CUDA',
        'QuantizedCPU': 'TENSOR_KEY_QUANTIZED_CPU', 'BlockedCPU': 'TENSOR_KEY_BLOCKED_CPU'}


class SchemaError(Exception):
    """A message without its place, or about a field of the entry."""

    def __init__(self, message, field=None):
        super().__init__(message)
        self.field = field


class Entry(dict):
    """The fields of one entry. place is its file:line; at() that of a field."""

    def __init__(self, fields, place, lines):
        super().__init__(fields)
        self.place, self.lines = place, lines

    def at(self, field):
        return f'{self.place.rpartition(":")[0]}:{self.lines[field]}' if field in self.lines else self.place

    def but(self, fields):
        """The same entry with other fields."""
        return Entry(fields, self.place, self.lines)


# ---- values ---------------------------------------------------------------------------------------

def shown(value):
    text = repr(value)
    return text if len(text) < 60 else text[:56] + ' ...'


def check_text(value, allowed=None):
    if not isinstance(value, str):
        raise SchemaError(f'must be text, got {shown(value)}')
    if not value.strip():
        raise SchemaError('is empty')
    for ch in value:
        if unicodedata.category(ch)[0] == 'C' and ch not in '\n\t':
            raise SchemaError(f'contains the control character U+{ord(ch):04X}')
    if allowed and not re.fullmatch(allowed, value):
        raise SchemaError(f'cannot be {shown(value)}')


def check_prose(value, _=None):
    """A sentence, which is part of a comment in C."""
    check_text(value)
    if '/*' in value or '*/' in value:
        raise SchemaError('contains the mark of a comment')


def check_choice(value, allowed):
    check_text(value)
    if value not in allowed:
        raise SchemaError(f'{shown(value)} is none of {", ".join(allowed)}')


def check_choices(value, allowed):
    """Words that are separated by commas."""
    check_text(value)
    words = [word.strip() for word in value.split(',')]
    for word in words:
        check_choice(word or ' ', allowed)
    if len(set(words)) != len(words):
        raise SchemaError('has a word twice')


def check_list(value, allowed):
    """A list of words: each matches the pattern, or is one of a tuple of words."""
    if not isinstance(value, list) or not value:
        raise SchemaError(f'must be a list of words, got {shown(value)}')
    for word in value:
        (check_choice if isinstance(allowed, tuple) else check_text)(word, allowed)
    if len(set(value)) != len(value):
        raise SchemaError('has a word twice')


def check_map(value, allowed):
    """{word: word}; allowed: the patterns of both."""
    if not isinstance(value, dict) or not value:
        raise SchemaError(f'must be a list of names with a value each, got {shown(value)}')
    for name, word in value.items():
        check_text(name, allowed[0])
        check_text(word, allowed[1])


def check_formula(value, _=None):
    """An expression in C: this finds what would be an error in generated code far from its line."""
    check_text(value)
    code = re.sub(r'"[^"\\]*"', '""', value)
    stray = re.search(r'[^\w\s()\[\]{}.,!?:<>=+\-*/&|"]', code, re.ASCII)
    if stray:
        raise SchemaError(f'contains {stray.group(0)!r}')
    check_brackets(code)


def check_brackets(text):
    open_ones = []
    for ch in text:
        if ch in '([{':
            open_ones.append(ch)
        elif ch in ')]}' and (not open_ones or open_ones.pop() + ch not in ('()', '[]', '{}')):
            raise SchemaError(f'has a {ch} without its other half')
    if open_ones:
        raise SchemaError(f'has a {open_ones[-1]} without its other half')


# ---- fields ---------------------------------------------------------------------------------------

Field = namedtuple('Field', 'check allowed', defaults=(None,))
FUNCTION = Field(check_text, WORD)
CALL = Field(check_text, rf'{OPERATOR_NAME}(\(.*\))?')

OPERATOR = {
    'func': Field(check_text),
    'variants': Field(check_choices, ('function', 'inplace', 'out')),
    'inplace': Field(check_text, r'[A-Za-z0-9_]+'),
    'out': Field(check_text, r'[A-Za-z0-9_]+'),
    'c': FUNCTION,
    'op': FUNCTION,
    'view': FUNCTION,
    'factory': FUNCTION,
    'composite': FUNCTION,
    'explicit': FUNCTION,
    'each': CALL,
    'alias': CALL,
    'dispatch': Field(check_map, ('|'.join(KEYS), WORD)),
    'batch': Field(check_text, r'[a-z_]+( [0-9]+)?'),
    'reads': Field(check_map, (WORD, 'twice')),
    'kernel': FUNCTION,
    'also': Field(check_list, WORD),
    'devices': Field(check_list, WORD),
    'dtype': Field(check_choice, tuple(reference.RULES)),
    'tags': Field(check_list, ('pointwise', 'reduction', 'autocast_lower', 'autocast_f32', 'autocast_promote')),
    **{field: Field(check_prose) for field in reference.FIELDS},
    'for': Field(check_list, r'[A-Za-z0-9_]+'),
}

# The other fields are arguments of the operator.
DERIVATIVE = {
    'name': Field(check_text, OPERATOR_NAME),
    'outputs': Field(check_list, WORD),
    'nondifferentiable': Field(check_list, OPERATOR_NAME),
}
FORMULA = Field(check_formula)


def check(entry, table, needed, other=None):
    """Exactly one of the fields `needed` is there, and all fields are as the table says; other: fields that it does not have."""
    if sum(field in entry for field in needed) != 1:
        raise SchemaError(f'an entry needs the field {" or ".join(needed)}')
    for field, value in entry.items():
        kind = table.get(field, other)
        if not kind:
            raise SchemaError(f'unknown field {field}', field)
        try:
            kind.check(value, kind.allowed)
        except SchemaError as e:
            raise SchemaError(f'{field}: {e}', field) from e


# ---- files ----------------------------------------------------------------------------------------

def refuse(mark, message):
    raise yaml.MarkedYAMLError(problem=message, problem_mark=mark)


class Loader(yaml.SafeLoader):
    """Refuses what no entry needs. A merge key (<<) does not copy the fields of the documentation."""
    depth = 0

    def compose_node(self, parent, index):
        event = self.peek_event()
        merged = getattr(index, 'value', None) == '<<' and self.depth == 2
        if self.depth == DEPTH:
            refuse(event.start_mark, 'an entry has no lists of lists')
        if getattr(event, 'tag', None):
            refuse(event.start_mark, f'an entry has no tags, got {event.tag}')
        if isinstance(event, yaml.AliasEvent):
            anchor = self.anchors.get(event.anchor)
            if not merged or (anchor and not anchor.end_mark):
                refuse(event.start_mark, f'*{event.anchor}: only `<<: *NAME` may name another entry, an earlier one')
        elif event.anchor and (self.depth != 1 or not isinstance(event, yaml.MappingStartEvent)):
            refuse(event.start_mark, f'&{event.anchor}: only an entry has a name')
        elif merged:
            refuse(event.start_mark, '<< needs the name of another entry: *NAME')
        self.depth += 1
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def compose_mapping_node(self, anchor):
        node = super().compose_mapping_node(anchor)
        seen = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                refuse(key.start_mark, 'the name of a field must be a word')
            if key.value in seen:
                refuse(key.start_mark, f'the field {key.value} is there twice')
            seen.add(key.value)
        return node

    def flatten_mapping(self, node):
        own = sum(key.tag != 'tag:yaml.org,2002:merge' for key, _ in node.value)
        super().flatten_mapping(node)
        taken = len(node.value) - own
        mine = {key.value for key, _ in node.value[taken:]}
        node.value = [pair for i, pair in enumerate(node.value)
                      if i >= taken or pair[0].value not in mine.union(reference.FIELDS)]


def text_of(path):
    try:
        with open(path, 'rb') as f:
            raw = f.read()
    except OSError as e:  # a folder, or a link to nothing
        sys.exit(f'{path}:1: {e.strerror}')
    try:
        return raw.decode()
    except UnicodeDecodeError as e:
        sys.exit(f'{path}:{raw.count(10, 0, e.start) + 1}: {e}')


def read(path):
    """The entries of a file."""
    text = text_of(path)
    try:
        reader = Loader(text)
        root = reader.get_single_node()
        entries = reader.construct_document(root) if root else None
    except yaml.reader.ReaderError as e:
        sys.exit(f'{path}:{text.count(chr(10), 0, e.position) + 1}: the character U+{e.character:04X} is not allowed')
    except yaml.YAMLError as e:
        mark = getattr(e, 'problem_mark', None)
        sys.exit(f'{path}:{mark.line + 1 if mark else 1}: {getattr(e, "problem", e)}')
    except ValueError as e:  # a date that does not exist
        sys.exit(f'{path}:{reader.line + 1}: {e}')
    if not isinstance(entries, list):
        sys.exit(f'{path}:1: a list of entries is needed, each with named fields')
    for entry, node in zip(entries, root.value):
        if not isinstance(entry, dict) or not all(isinstance(field, str) for field in entry):
            sys.exit(f'{path}:{node.start_mark.line + 1}: an entry with named fields is needed')
    return [Entry(entry, f'{path}:{node.start_mark.line + 1}', {key.value: key.start_mark.line + 1 for key, _ in node.value})
            for entry, node in zip(entries, root.value)]


def stop(entry, error):
    """Ends with the error at its line."""
    sys.exit(f'{entry.at(error.field)}: {error}')
