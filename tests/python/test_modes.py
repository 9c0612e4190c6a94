# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Modes of a thread: context managers and decorators."""
import threading

import pytest

import devtensor as dt
from devtensor import autograd


@pytest.fixture(autouse=True)
def same_state_after_each_test():
    assert dt.is_grad_enabled() and not dt.is_inference_mode_enabled()
    yield
    assert dt.is_grad_enabled() and not dt.is_inference_mode_enabled() and not autograd.is_anomaly_enabled()


def leaf():
    return dt.ones(2).requires_grad_()


def test_no_grad_and_enable_grad_nest():
    x = leaf()
    with dt.no_grad():
        assert not (x * 2).requires_grad
        with dt.enable_grad():
            assert (x * 2).requires_grad
        assert not dt.is_grad_enabled()
    assert (x * 2).requires_grad


def test_exceptions_restore_the_mode():
    for mode in (dt.no_grad(), dt.inference_mode(), dt.set_grad_enabled(False), autograd.detect_anomaly()):
        with pytest.raises(KeyError):
            with mode:
                raise KeyError


def test_one_object_is_entered_several_times():
    mode = dt.no_grad()
    with mode:
        with dt.enable_grad(), mode:
            assert not dt.is_grad_enabled()
        assert not dt.is_grad_enabled()
    with mode:
        assert not dt.is_grad_enabled()


@pytest.mark.parametrize('decorate', [dt.no_grad(), dt.no_grad, dt.inference_mode(), dt.inference_mode,
                                      lambda fn: dt.set_grad_enabled(False)(fn)])
def test_decorators(decorate):
    @decorate
    def f(n):
        """doc"""
        assert not dt.is_grad_enabled() or dt.is_inference_mode_enabled()
        return f(n - 1) if n else 'end'
    assert f(3) == 'end' and f.__name__ == 'f' and f.__doc__ == 'doc'
    assert dt.is_grad_enabled()


def test_generator_functions_have_the_mode_while_they_run():
    closed = []

    @dt.no_grad()
    def g():
        try:
            assert not dt.is_grad_enabled()
            got = yield 1
            assert got == 'sent' and not dt.is_grad_enabled()
            try:
                yield 2
            except KeyError:
                assert not dt.is_grad_enabled()
            yield 3
        finally:
            closed.append(dt.is_grad_enabled())
    it = g()
    assert next(it) == 1 and dt.is_grad_enabled()
    assert it.send('sent') == 2 and dt.is_grad_enabled()
    assert it.throw(KeyError()) == 3 and dt.is_grad_enabled()
    it.close()
    assert closed == [False] and dt.is_grad_enabled()

    @dt.no_grad
    def value():
        yield 1
        return 'value'

    def outer():
        return (yield from value())
    it = outer()
    next(it)
    with pytest.raises(StopIteration) as info:
        next(it)
    assert info.value.value == 'value'


def test_set_grad_enabled_takes_effect_at_once():
    dt.set_grad_enabled(False)
    assert not dt.is_grad_enabled()
    dt.set_grad_enabled(True)
    with dt.set_grad_enabled(False):
        assert not dt.is_grad_enabled()
    assert dt.is_grad_enabled()


def test_inference_mode():
    x = leaf()
    with dt.inference_mode():
        y = x * 2
        assert dt.is_inference_mode_enabled() and y.is_inference()
        with dt.inference_mode(False):
            assert not dt.is_inference_mode_enabled()
    with dt.inference_mode(False):
        assert (x * 2).requires_grad
    with pytest.raises((RuntimeError, ValueError)):
        y.requires_grad_()
    with pytest.raises((RuntimeError, ValueError)):
        x * y
    assert (x * y.clone()).requires_grad


def test_detect_anomaly_finds_nan():
    x = dt.tensor([0.], requires_grad=True)
    with autograd.detect_anomaly():
        assert autograd.is_anomaly_enabled()
        y = (x.sqrt() * 0).sum()
        with pytest.raises(RuntimeError, match='NaN'):
            y.backward()
    with autograd.set_detect_anomaly(False):
        assert not autograd.is_anomaly_enabled()
    (x.sqrt() * 0).sum().backward()


def test_detect_anomaly_keeps_exceptions():
    x = leaf()
    error = KeyError('mine')

    def fail(g):
        raise error
    x.register_hook(fail)
    with autograd.detect_anomaly():
        with pytest.raises(KeyError) as info:
            (x * 2).sum().backward()
    assert info.value is error


def test_modes_belong_to_the_thread():
    seen = []
    with dt.no_grad():
        t = threading.Thread(target=lambda: seen.append(dt.is_grad_enabled()))
        t.start()
        t.join()
    assert seen == [True]


def test_classes_cannot_be_decorated():
    with pytest.raises(TypeError):
        @dt.no_grad()
        class C:   # noqa
            pass
