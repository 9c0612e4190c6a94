# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Functions whose operators save nothing, and run again in backward."""
from devtensor import _C, _tree


def checkpoint(function, *args, use_reentrant=None, preserve_rng_state=True, **kwargs):
    """function(*args, **kwargs), without keeping the tensors that its operators save: backward runs it again when it
    first needs one, and then frees them. It must compute the same both times; it finds the default generator in the same
    state, so preserve_rng_state must be True. Tensors among the arguments, also in tuples, lists and dicts, must not be
    changed in place. use_reentrant is ignored: gradients are those without a checkpoint."""
    if not preserve_rng_state:
        raise ValueError('checkpoint: preserve_rng_state must be True')
    leaves, structure = _tree.flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if isinstance(leaf, _C.Tensor)]
    tensors = tuple(leaves[i] for i in places)
    for i in places:
        leaves[i] = None
    first = []

    def run(*given):
        values = list(leaves)
        for i, t in zip(places, given):
            values[i] = t
        a, k = _tree.unflatten(values, structure)
        result = function(*a, **k)
        if not complete:
            first.append(result)

    complete = False
    _C._checkpoint(run, tensors)
    complete = True
    return first.pop()
