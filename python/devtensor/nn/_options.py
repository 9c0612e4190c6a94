# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Arguments of modules whose options are declared in a table."""


def options_given(name, options, args, kwargs):
    """The options that a call gives, by position and by name, in a dict. TypeError for others, and for one given
    twice."""
    if len(args) > len(options):
        raise TypeError(f'{name} takes {len(options)} arguments, got {len(args)}')
    values = dict(zip(options, args))
    for key, value in kwargs.items():
        if key not in options or key in values:
            raise TypeError(f'{name}: {"unknown" if key not in options else "two values for"} argument {key!r}')
        values[key] = value
    return values
