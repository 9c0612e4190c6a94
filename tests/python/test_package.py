# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The package: its types, signatures, versions, and the examples that type checkers accept."""
import ast
import importlib.util
import inspect
import keyword
import os
import re
import site
import subprocess
import sys

import pytest

import devtensor
import devtensor.array_api  # it adds methods to Tensor
from devtensor import _C

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))
PACKAGE = os.path.dirname(os.path.abspath(devtensor.__file__))
# Attributes that every module or class has.
OF_MODULES = {'__doc__', '__file__', '__loader__', '__name__', '__package__', '__spec__'}
# CPython 3.12 and later show the buffer protocol of types in C.
OF_BUFFERS = {'__buffer__', '__release_buffer__'}
OF_OBJECTS = set(dir(object)) | {'__module__', '__dict__', '__weakref__', '__annotations__'}


def stub_tree():
    with open(os.path.join(PACKAGE, '_C.pyi'), encoding='utf-8') as f:
        return ast.parse(f.read())


def definitions(body):
    """Names of functions, classes and variables."""
    names = set()
    for node in body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            alias = isinstance(node.annotation, ast.Name) and node.annotation.id == '_TypeAlias'
            names |= set() if alias else {node.target.id}
        elif isinstance(node, ast.Assign):
            names |= {target.id for target in node.targets if target.id[:1] != '_'}
    return names


def is_private_type(node):
    return isinstance(node, ast.ClassDef) and node.name.startswith('_') and not hasattr(_C, node.name)


def test_stub_has_the_names_of_the_module():
    tree = stub_tree()
    stated = definitions(node for node in tree.body if not is_private_type(node))
    assert stated - {'_T'} == set(dir(_C)) - OF_MODULES


@pytest.mark.parametrize('name', ['Tensor', 'dtype', 'layout', 'memory_format', 'device', 'Generator'])
def test_stub_has_the_attributes_of_the_class(name):
    node = next(n for n in stub_tree().body if isinstance(n, ast.ClassDef) and n.name == name)
    cls = getattr(_C, name)
    stated = definitions(node.body) - OF_OBJECTS
    if sys.version_info < (3, 12):
        stated -= OF_BUFFERS
    assert stated == set(dir(cls)) - OF_OBJECTS


def generated_functions():
    return [n for n in dir(_C) if inspect.isbuiltin(getattr(_C, n)) and not n.startswith('_')]


def test_functions_have_signatures_for_help():
    without = []
    for name in generated_functions():
        try:
            inspect.signature(getattr(_C, name))
        except ValueError:
            without.append(name)
    # Overloads that have a parameter without a default behind one with a default have no signature in Python.
    assert len(without) <= 2, without
    assert len(generated_functions()) > 600


def test_methods_have_signatures_for_help():
    methods = [n for n in dir(_C.Tensor) if inspect.ismethoddescriptor(getattr(_C.Tensor, n)) and not n.startswith('_')]
    without = []
    for name in methods:
        try:
            signature = inspect.signature(getattr(_C.Tensor, name))
        except ValueError:
            without.append(name)
        else:
            assert list(signature.parameters)[0] == 'self', name
    assert len(without) <= 2, without
    assert len(methods) > 500


def test_signature_shows_names_and_defaults():
    assert str(inspect.signature(devtensor.add)) == '(input, other, *, alpha=1)'
    assert str(inspect.signature(devtensor.Tensor.clamp)) == '(self, /, min=None, max=None)'
    assert inspect.signature(devtensor.zeros).parameters['requires_grad'].default is False


def test_parameters_of_signatures_can_be_given_by_name():
    a = devtensor.ones(2, 3)
    assert devtensor.add(input=a, other=a, alpha=2).sum().item() == 18
    assert devtensor.sum(input=a, dim=0).shape == (3,)


def test_help_has_the_text_of_the_reference():
    text = devtensor.matmul.__doc__
    assert 'matmul(Tensor self, Tensor other) -> Tensor' in text
    for name in generated_functions():
        assert getattr(_C, name).__doc__, name


def test_versions_agree():
    assert devtensor.__version__ == _C.__version__
    path = os.path.join(TREE, 'python', 'pyproject.toml')
    if not os.path.exists(path):
        pytest.skip('no source tree')
    with open(path) as f:
        assert re.search(r'^version = "(.*)"$', f.read(), re.M)[1] == devtensor.__version__
    with open(os.path.join(TREE, 'Makefile')) as f:
        assert re.search(r'^VERSION +:= (.*)$', f.read(), re.M)[1] == devtensor.__version__


def test_package_is_typed():
    assert os.path.exists(os.path.join(PACKAGE, 'py.typed'))
    assert os.path.exists(os.path.join(PACKAGE, '_C.pyi'))


def test_stub_uses_no_name_that_the_module_defines():
    """int, float and others are dtypes in the module: an annotation with such a name would mean the dtype."""
    own = {n for n in dir(_C) if not isinstance(getattr(_C, n), type)}
    wrong = set()
    for node in ast.walk(stub_tree()):
        annotations = [getattr(node, 'returns', None), getattr(node, 'annotation', None)]
        for annotation in filter(None, annotations):
            wrong |= {n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)} & own
    assert not wrong and not any(keyword.iskeyword(n) for n in own)


CHECKED = '''\
import devtensor as dt

def loss(x: dt.Tensor, weight: dt.Tensor) -> dt.Tensor:
    hidden = (x @ weight).relu()
    hidden += 1
    values, indices = hidden.max(dim=1, keepdim=True)
    named = dt.topk(hidden, 2)
    return (values - named.values).abs().mean() * 2 + hidden.view(-1, 3)[0, None].sum(axis=0)[0]

size: tuple[int, ...] = dt.zeros(2, 3, dtype=dt.float64, requires_grad=True).shape
generator: dt.Generator = dt.Generator('cpu').manual_seed(1)
number: float = float(dt.randn((2, 2), generator=generator).sum())
own: dt.Tensor = dt.cat([dt.ones(1), dt.ones(2)], dim=0).add_(1).mul_(dt.ones(3))
'''
REFUSED = ['dt.add(1)', 'dt.zeros("a", "b")', 'dt.ones(2).no_such_method()', 'x: int = dt.ones(2).shape',
           'dt.sum(dt.ones(2), dim="x")', 'dt.ones(2).sum(0).data_ptr().item()']


def checker(name):
    """The command of a type checker: a program, or a module of this interpreter. None where these would be slow."""
    if hasattr(sys, 'gettotalrefcount') or os.environ.get('LD_PRELOAD'):
        pytest.skip('a debug build or sanitizers: the checkers are no part of the test')
    found = os.environ.get('PYTHON_' + name.upper())
    if found:
        return [found]
    if importlib.util.find_spec(name):
        return [sys.executable, '-m', name]
    return pytest.skip(f'no {name}')


def import_paths(*more):
    """Where mypy looks for modules. It refuses a path that the interpreter has already: that of an installed
    package."""
    found = os.path.dirname(PACKAGE)
    return os.pathsep.join(([] if found in site.getsitepackages() else [found]) + list(more))


def check_types(name, folder, text, *flags):
    path = folder / 'program.py'
    path.write_text(text)
    env = dict(os.environ, MYPYPATH=import_paths(), PYTHONPATH=os.path.dirname(PACKAGE))
    done = subprocess.run([*checker(name), *flags, str(path)], capture_output=True, text=True, cwd=folder, env=env,
                          check=False)
    return done.returncode, done.stdout + done.stderr


def flags_of(name, folder):
    if name == 'mypy':
        return ['--strict', '--cache-dir', str(folder / 'cache')]
    (folder / 'pyrightconfig.json').write_text(f'{{"extraPaths": ["{os.path.dirname(PACKAGE)}"]}}')
    return ['--level', 'error']


@pytest.mark.parametrize('name', ['mypy', 'basedpyright'])
def test_type_checker_accepts_programs_and_refuses_mistakes(name, tmp_path):
    flags = flags_of(name, tmp_path)
    status, said = check_types(name, tmp_path, CHECKED, *flags)
    assert status == 0, said
    status, said = check_types(name, tmp_path, 'import devtensor as dt\n' + '\n'.join(REFUSED) + '\n', *flags)
    assert status != 0
    for line, text in enumerate(REFUSED, 2):
        assert re.search(rf'program\.py:{line}\b', said), f'{text} is accepted\n{said}'


def run_mypy(tmp_path, *arguments):
    """The errors of mypy in the programs and the package, of names alone: their modules set methods of Tensor."""
    env = dict(os.environ, MYPYPATH=import_paths(os.path.join(TREE, 'examples', 'python')))
    done = subprocess.run([*checker('mypy'), '--cache-dir', str(tmp_path / 'cache'), *arguments], capture_output=True,
                          text=True, cwd=tmp_path, env=env, check=False)
    assert done.returncode in (0, 1), done.stderr
    return [line for line in done.stdout.splitlines() if re.search(r'\[(attr-defined|name-defined|call-arg)\]', line)]


def test_mypy_finds_every_name_that_the_examples_and_the_package_use(tmp_path):
    examples = os.path.join(TREE, 'examples', 'python')
    if not os.path.isdir(examples):
        pytest.skip('no source tree')
    programs = [os.path.join(examples, n) for n in sorted(os.listdir(examples)) if n.endswith('.py')]
    assert programs and not run_mypy(tmp_path, *programs)
    assert not run_mypy(tmp_path, '-p', 'devtensor')
    wrong = tmp_path / 'wrong.py'
    wrong.write_text('import devtensor\nfrom devtensor import nn\ndevtensor.no_such_function()\nnn.ReLu()\n')
    assert len(run_mypy(tmp_path, str(wrong))) == 2
