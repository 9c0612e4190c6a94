# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The examples of the pages about Python give the results that the pages show."""
import doctest
import os

import pytest

DOCS = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..', 'docs'))


def examples(name):
    with open(os.path.join(DOCS, name), encoding='utf-8') as f:
        return doctest.DocTestParser().get_doctest(f.read(), {}, name, name, 0)


@pytest.mark.parametrize('name, least', [('python.md', 30), ('coming-from-pytorch.md', 8)])
def test_page_shows_what_the_examples_print(name, least):
    test = examples(name)
    assert len(test.examples) >= least
    said = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE, verbose=False)
    runner.run(test, out=said.append)
    assert runner.failures == 0, ''.join(said)
