# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Exchange with PyTorch: the same memory both ways, the table of C functions, files of torch.save().

Skipped without PyTorch. With it: PYTHONPATH=build/python $(bench/peers python) -m pytest tests/python/test_torch.py
"""
import os
import sys

import pytest

import devtensor as dt
from memory import growth

torch = pytest.importorskip("torch")

ROUNDS = int(os.environ.get("DEVTENSOR_ROUNDS", "100000"))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64",
          "complex128", "uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2"]


@pytest.mark.parametrize("name", DTYPES)
def test_exchange_has_the_address_the_dtype_and_the_strides(name):
    source = torch.arange(24).reshape(4, 6).to(getattr(torch, name))
    for x in source, source.t(), source[1:, ::2], source[2], source[3, 1], source[:0], source.expand(2, 4, 6):
        t = dt.from_torch(x)
        assert t.dtype is getattr(dt, name) and t.shape == tuple(x.shape)
        assert not x.numel() or (t.data_ptr() == x.data_ptr() and t.strides == x.stride())
        y = dt.to_torch(t)
        assert y.dtype is x.dtype and y.shape == x.shape and (not x.numel() or y.data_ptr() == x.data_ptr())


def test_writes_are_seen_on_both_sides():
    x = torch.zeros(4)
    t = dt.from_torch(x)
    t[1] = 5
    x[2] = 7
    assert t.tolist() == x.tolist() == [0, 5, 7, 0]
    del x
    assert dt.to_torch(t).add_(1).tolist() == t.tolist() == [1, 6, 8, 1]


def test_generic_functions_do_the_same():
    x = torch.ones(3)
    assert dt.from_dlpack(x).data_ptr() == dt.asarray(x).data_ptr() == x.data_ptr()
    t = dt.ones(3)
    assert torch.from_dlpack(t).data_ptr() == t.data_ptr()
    assert dt.from_dlpack(x, copy=True).data_ptr() != x.data_ptr()


def test_gradients_must_be_detached():
    for make in lambda: dt.from_torch(torch.ones(2, requires_grad=True)), \
            lambda: dt.to_torch(dt.ones(2, requires_grad=True)):
        with pytest.raises(BufferError, match="detach|gradient"):
            make()


def test_read_only_memory_is_not_given_to_pytorch():
    with pytest.raises(BufferError, match="read-only"):
        dt.to_torch(dt.frombuffer(b"abcd", dtype=dt.uint8))


def test_other_objects_are_refused():
    for bad in 3, None, dt.ones(2), [1.0]:
        with pytest.raises(TypeError):
            dt.from_torch(bad)
    for bad in 3, None, torch.ones(2), [1.0]:
        with pytest.raises(TypeError):
            dt.to_torch(bad)
    for bad in torch.ones(2, 2).to_sparse(), torch.ones(2, dtype=torch.complex64).conj(), torch.ones(2, device="meta"):
        with pytest.raises((BufferError, RuntimeError, ValueError, NotImplementedError)):
            dt.from_torch(bad)


def test_memory_is_released_by_the_last_user():
    x = torch.ones(1 << 20)
    before = x._use_count()
    t = dt.from_torch(x)
    view = t[3:]
    del t
    assert x._use_count() > before
    del view
    assert x._use_count() == before


@pytest.mark.parametrize("kind", ["from", "to"])
def test_round_trips_do_not_grow_memory(kind):
    x, t = torch.ones(16), dt.ones(16)
    assert growth((lambda: dt.from_torch(x)) if kind == "from" else (lambda: dt.to_torch(t)), ROUNDS) < 1024
    assert sys.getrefcount(x) == 2 and sys.getrefcount(t) == 2


# ---- files ----

def equal(ours, theirs):
    return (ours.dtype.name == str(theirs.dtype).split(".")[1] and ours.shape == tuple(theirs.shape) and
            ours.stride() == theirs.stride() and
            torch.equal(dt.to_torch(ours.detach().clone()).reshape(-1).view(torch.uint8),
                        theirs.detach().contiguous().reshape(-1).view(torch.uint8)))


@pytest.mark.parametrize("mapping", [None, "r", "c"])
def test_files_of_pytorch_are_loaded(tmp_path, mapping):
    base = torch.arange(24.0).reshape(4, 6)
    saved = {"base": base, "t": base.t(), "slice": base[1:3, ::2], "e": torch.empty(0, 3),
             **{n: torch.arange(3).to(getattr(torch, n)) for n in DTYPES}, "bool2": torch.tensor([True, False])}
    torch.save(saved, tmp_path / "a.pt")
    loaded = dt.load(tmp_path / "a.pt", map=mapping)
    assert list(loaded) == list(saved) and all(equal(loaded[k], saved[k]) for k in saved if saved[k].numel())
    assert loaded["t"].data_ptr() == loaded["base"].data_ptr()
    assert loaded["slice"].data_ptr() == loaded["base"].data_ptr() + 24


def test_state_dicts_of_modules_and_optimizers_are_loaded(tmp_path):
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4), torch.nn.LSTM(4, 2))
    optimizer = torch.optim.AdamW(model.parameters())
    for p in model.parameters():
        p.grad = torch.ones_like(p)
    optimizer.step()
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3, "loss": 0.5},
               tmp_path / "a.pt")
    loaded = dt.load(tmp_path / "a.pt")
    assert loaded["epoch"] == 3 and loaded["loss"] == 0.5
    state = model.state_dict()
    assert list(loaded["model"]) == list(state) and loaded["model"]._metadata == state._metadata
    assert all(equal(loaded["model"][k], state[k]) for k in state)
    assert loaded["optimizer"]["param_groups"] == optimizer.state_dict()["param_groups"]
    assert equal(loaded["optimizer"]["state"][0]["exp_avg"], optimizer.state_dict()["state"][0]["exp_avg"])


def test_parameters_and_other_values_are_loaded(tmp_path):
    torch.save([torch.nn.Parameter(torch.ones(2)), torch.ones(2, requires_grad=True), torch.float16, torch.Size([2, 3]),
                (1, 2 ** 70, 1j, None, "ü")], tmp_path / "a.pt")
    p, t, dtype, size, rest = dt.load(tmp_path / "a.pt")
    assert p.requires_grad and p.is_leaf and t.requires_grad and dtype is dt.float16 and size == (2, 3)
    assert rest == (1, 2 ** 70, 1j, None, "ü")


@pytest.mark.parametrize("make, name", [
    (lambda: torch.nn.Linear(2, 2), "torch.nn.modules.linear.Linear"), (lambda: {1, 2}, "set"),
    (lambda: torch.ones(2).to_sparse(), "_rebuild_sparse_tensor"), (lambda: slice(1), "slice"),
    (lambda: b"x", "encode"),
    (lambda: os.system, "system")])
def test_other_objects_in_files_are_refused_by_name(tmp_path, make, name):
    torch.save(make(), tmp_path / "a.pt")
    with pytest.raises(dt.UnpicklingError, match=name):
        dt.load(tmp_path / "a.pt")


def test_the_old_format_is_refused(tmp_path):
    torch.save({"a": torch.ones(2)}, tmp_path / "a.pt", _use_new_zipfile_serialization=False)
    with pytest.raises(NotImplementedError, match="before PyTorch 1.6"):
        dt.load(tmp_path / "a.pt")


def test_files_without_checksums_are_loaded(tmp_path):
    before = torch.serialization.get_crc32_options()
    torch.serialization.set_crc32_options(False)
    try:
        torch.save({"a": torch.ones(2)}, tmp_path / "a.pt")
    finally:
        torch.serialization.set_crc32_options(before)
    assert dt.load(tmp_path / "a.pt")["a"].tolist() == [1, 1]


def test_torchscript_is_refused(tmp_path):
    torch.jit.script(torch.nn.Linear(2, 2)).save(str(tmp_path / "a.pt"))
    with pytest.raises(ValueError):
        dt.load(tmp_path / "a.pt")
