# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""The garbage collector and graphs that hold Python objects."""
import gc
import subprocess
import sys
import threading
import weakref

import devtensor as dt
from devtensor import autograd


def leaf():
    return dt.ones(4).requires_grad_()


class Marker:
    """Has a weak reference and is kept by what is tested."""


class Keeps(autograd.Function):
    """Keeps its output on ctx: tensor -> node -> ctx -> tensor."""
    marker = None

    @staticmethod
    def forward(ctx, x):
        ctx.output = x * 2
        ctx.marker = Keeps.marker
        return ctx.output

    @staticmethod
    def backward(ctx, g):
        assert ctx.marker is not None and ctx.output is not None
        return g * 2


def call(x):
    """The result of Keeps, and a reference to what its ctx keeps."""
    Keeps.marker = m = Marker()
    y = Keeps.apply(x)
    Keeps.marker = None
    return y, weakref.ref(m)


def test_cycle_through_the_ctx_of_a_function():
    gc.collect()
    y, gone = call(leaf())
    gc.collect()
    assert gone() is not None
    del y
    assert gone() is not None   # a cycle
    gc.collect()
    assert gone() is None


def test_cycle_through_hook_closures():
    for register in ('tensor', 'leaf', 'node', 'prehook', 'accumulate', 'metadata'):
        m = Marker()
        gone = weakref.ref(m)
        x = leaf()
        y = x * 2

        def hook(*grads, y=y, x=x, m=m):
            return None
        if register == 'tensor':
            y.register_hook(hook)
        elif register == 'leaf':
            x.register_hook(hook)
        elif register == 'node':
            y.grad_fn.register_hook(hook)
        elif register == 'prehook':
            y.grad_fn.register_prehook(hook)
        elif register == 'metadata':
            y.grad_fn.metadata['hook'] = hook
        else:
            x.register_post_accumulate_grad_hook(hook)
        if register in ('leaf', 'accumulate'):
            hook.__kwdefaults__ = {'y': None, 'x': x, 'm': m}    # y is an owner of the leaf
        del m, hook
        gc.collect()
        assert gone() is not None, register
        y.sum().backward()
        del x, y
        gc.collect()
        assert gone() is None, register


def test_a_handle_in_the_closure():
    m = Marker()
    gone = weakref.ref(m)
    y = leaf() * 2
    handles, roots = [], [y]
    y.register_hook(lambda g, m=m: handles[0].remove())
    handles.append(y.grad_fn.register_hook(lambda a, b, m=m, y=y: handles.clear()))
    del m, y
    gc.collect()
    assert gone() is not None
    handles = roots.clear()
    gc.collect()
    assert gone() is None


def test_a_live_graph_of_another_tensor_survives():
    x = leaf()
    y, gone = call(x)
    z = (y * 3).sum()
    del y
    gc.collect()
    assert gone() is not None
    z.backward()
    assert [e.item() for e in x.grad] == [6] * 4
    node = z.grad_fn
    del z
    gc.collect()
    assert gone() is not None   # the node object leads to it
    del node
    gc.collect()
    assert gone() is None


def test_a_graph_with_two_paths_is_collected():
    y, gone = call(leaf())
    z = (y * y + y.exp()).sum()
    m = Marker()
    other = weakref.ref(m)
    z.register_hook(lambda g, z=z, m=m: None)
    del y, m
    gc.collect()
    assert gone() is not None and other() is not None
    del z
    gc.collect()
    assert other() is None
    gc.collect()        # y was an owner of the graph, too
    assert gone() is None


def test_gradients_with_a_graph():
    x = leaf()
    y, gone = call(x)
    g, = autograd.grad((y ** 2).sum(), x, create_graph=True)
    del y
    gc.collect()
    assert gone() is not None
    g.sum().backward()
    del g
    gc.collect()
    assert gone() is None


def test_each_holder_keeps_the_ctx():
    """Every way to reach a graph keeps what it holds, whichever is left."""
    x = leaf()
    for keep in range(4):
        y, gone = call(x)
        holders = [y, y * 2, y.grad_fn, y.reshape(2, 2)]
        del y
        holders = [holders[keep]]
        gc.collect()
        gc.collect()
        assert gone() is not None, keep
        h = holders.pop()
        if isinstance(h, dt.Tensor):
            h.sum().backward()
        del h
        gc.collect()
        assert gone() is None, keep


def test_collections_while_other_threads_use_graphs():
    """A collection that runs between two references of a backward must not free the graph."""
    errors = []
    end = threading.Event()

    def work():
        try:
            while not end.is_set():
                x = dt.ones(200, 200).requires_grad_()
                y, gone = call2(x)
                z = (y @ x).exp()
                z.sum().backward()
                assert gone() is not None
                del y
        except BaseException as e:   # noqa
            errors.append(e)

    def call2(x):
        m = Marker()

        class F(autograd.Function):
            @staticmethod
            def forward(ctx, a):
                ctx.m = m
                ctx.o = a * 0.001
                return ctx.o

            @staticmethod
            def backward(ctx, g):
                assert ctx.m is m and ctx.o is not None
                return g
        return F.apply(x), weakref.ref(m)
    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for _ in range(60):
        gc.collect()
    end.set()
    for t in threads:
        t.join(60)
    assert not any(t.is_alive() for t in threads) and not errors


def test_references_are_counted():
    class Marker:
        pass
    x = leaf()
    m = Marker()
    before = sys.getrefcount(m), sys.getrefcount(Marker), sys.getrefcount(x)

    def once():
        Keeps.marker = m
        y = Keeps.apply(x)
        Keeps.marker = None
        y.register_hook(lambda g, m=m: None)
        y.grad_fn.metadata['m'] = m
        y.sum().backward()
    for _ in range(200):
        once()
    gc.collect()
    assert (sys.getrefcount(m), sys.getrefcount(Marker), sys.getrefcount(x)) == before


def test_a_deep_graph_is_traversed_without_recursion():
    x = leaf()
    y, gone = call(x)
    for _ in range(100000):
        y = y + 1
    y.register_hook(lambda g, y=y: None)
    gc.collect()
    assert gone() is not None
    del y
    gc.collect()
    gc.collect()        # the result of Keeps is an owner of its node, too
    assert gone() is None


def test_many_objects_on_one_chain_take_linear_time():
    y = leaf()
    y.register_hook(lambda g: None)
    kept = [y]
    for _ in range(20000):
        kept.append(kept[-1] + 1)
    del y
    gc.collect()
    gc.collect()
    assert len(kept) == 20001


def test_referents_outside_of_a_collection():
    y, gone = call(leaf())
    assert any(isinstance(o, autograd.FunctionCtx) for o in gc.get_referents(y))
    gc.collect()
    z = y * 1
    assert not any(isinstance(o, autograd.FunctionCtx) for o in gc.get_referents(y))
    assert z is not None


def test_an_import_while_a_collection_begins():
    """Any allocation may begin one, that of the import of gc included."""
    code = """
import builtins, gc
plain = builtins.__import__
def collects(name, *args, **kwargs):
    gc.collect()
    return plain(name, *args, **kwargs)
builtins.__import__ = collects
import devtensor
"""
    subprocess.run([sys.executable, '-c', code], check=True)


def test_a_tensor_that_a_live_graph_gives_out_during_a_collection_stays_as_it_is():
    """Code that the collection runs, as the destructor of a capsule, takes an object that was garbage from a graph."""
    code = """
import ctypes, gc
import devtensor as dt
Destructor = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)
new = ctypes.pythonapi.PyCapsule_New
new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, Destructor]
class Parameter(dt.Tensor):
    pass
taken = []
destructor = Destructor(lambda capsule: taken.append(node.next_functions[0][0].variable))
x = Parameter(dt.ones(3))
x.requires_grad_()
x.itself, x.capsule = x, new(1, b'name', destructor)
y = x * x
node = y.grad_fn
del x
gc.collect()
assert taken[0].shape == (3,) and taken[0].tolist() == [1, 1, 1]
y.sum().backward()
assert taken[0].grad.tolist() == [2, 2, 2]
taken[0].__dict__.clear()
del y, node
taken.clear()
gc.collect()
"""
    subprocess.run([sys.executable, '-c', code], check=True)
