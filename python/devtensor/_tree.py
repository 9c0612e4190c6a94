# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Nested tuples, lists and dicts as a flat list of leaves and a structure."""


class Leaf:
    """The structure of a value that is no container."""

    def __repr__(self):
        return '*'


LEAF = Leaf()


def flatten(tree):
    """Returns (leaves, structure). None is a leaf. Subclasses of dict are no containers, named tuples are."""
    leaves = []
    return leaves, _flatten(tree, leaves)


def _flatten(tree, leaves):
    kind = type(tree)
    if kind is tuple or kind is list or (isinstance(tree, tuple) and hasattr(kind, '_fields')):
        return kind, [_flatten(e, leaves) for e in tree]
    if kind is dict:
        return kind, {k: _flatten(e, leaves) for k, e in tree.items()}
    leaves.append(tree)
    return LEAF


def unflatten(leaves, structure):
    """The inverse of flatten()."""
    return _unflatten(iter(leaves), structure)


def _unflatten(leaves, structure):
    if structure is LEAF:
        return next(leaves)
    kind, parts = structure
    if kind is dict:
        return {k: _unflatten(leaves, s) for k, s in parts.items()}
    parts = [_unflatten(leaves, s) for s in parts]
    if hasattr(kind, '_fields'):
        return kind(*parts)
    return kind(parts)


def tree_map(fn, tree):
    """The same structure with fn(leaf) in place of each leaf."""
    leaves, structure = flatten(tree)
    return unflatten([fn(leaf) for leaf in leaves], structure)


def broadcast_prefix(prefix, tree, what):
    """A value of `prefix` for each leaf of `tree`: prefix has the structure of tree, or a single value where tree has
    a container. ValueError where they do not fit."""
    result = []
    _broadcast(prefix, flatten(tree)[1], result, what)
    return result


def _count(structure):
    if structure is LEAF:
        return 1
    parts = structure[1].values() if structure[0] is dict else structure[1]
    return sum(_count(s) for s in parts)


def _broadcast(prefix, structure, result, what):
    if structure is LEAF or not isinstance(prefix, (tuple, list, dict)):
        if isinstance(prefix, (tuple, list, dict)):
            raise ValueError(f'{what}: {prefix!r} is given for a single value')
        result.extend([prefix] * _count(structure))
        return
    kind, parts = structure
    if isinstance(prefix, dict) != (kind is dict) or len(prefix) != len(parts):
        raise ValueError(f'{what} has another structure than the values: {prefix!r}')
    if kind is dict:
        if prefix.keys() != parts.keys():
            raise ValueError(f'{what} has other keys than the values: {sorted(map(str, prefix))}')
        for k, s in parts.items():
            _broadcast(prefix[k], s, result, what)
    else:
        for p, s in zip(prefix, parts):
            _broadcast(p, s, result, what)
