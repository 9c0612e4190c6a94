# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Files of tensors: .npy, .npz and safetensors; archives as mappings; save() and load()."""
import json
import os
import pathlib
import random
import struct
import threading
import zipfile

import pytest

import devtensor as dt
import pt_files
from memory import growth

np = pytest.importorskip("numpy")

MUTATIONS = int(os.environ.get("DEVTENSOR_MUTATIONS", "1000"))
DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64", "complex64",
          "complex128", "uint16", "uint32", "uint64"]


def sample(name="float32"):
    return dt.arange(6, dtype=dt.float64).view(2, 3).to(getattr(dt, name))


def save_safetensors(path, tensors):
    dt.save_safetensors(path, tensors)


FORMATS = {"npz": (dt.save_npz, dt.load_npz, dt.open_npz),
           "safetensors": (save_safetensors, dt.load_safetensors, dt.open_safetensors)}


# ---- npy ----

@pytest.mark.parametrize("name", DTYPES)
def test_npy_is_read_and_written_as_numpy_does(tmp_path, name):
    t, path = sample(name), tmp_path / "a.npy"
    for view in t, t.T, t[:, ::2], t[0], t[0, 1], t[:0]:
        dt.save_npy(path, view)
        a = np.load(path)
        assert a.dtype == name and a.shape == view.shape and a.tolist() == view.tolist()
        np.save(path, a)
        back = dt.load_npy(path)
        assert back.dtype is t.dtype and back.shape == view.shape and back.tolist() == a.tolist()


def test_npy_takes_every_kind_of_path(tmp_path):
    for path in str(tmp_path / "a.npy"), tmp_path / "b.npy", os.fsencode(tmp_path / "ü.npy"):
        dt.save_npy(path, sample())
        assert dt.load_npy(path).shape == (2, 3) and dt.load(path).shape == (2, 3)
    for bad in 3, None, ["a"], "a\0b":
        with pytest.raises((TypeError, ValueError)):
            dt.load_npy(bad)
        with pytest.raises((TypeError, ValueError)):
            dt.save_npy(bad, sample())
    with pytest.raises(FileNotFoundError):
        dt.load_npy(tmp_path / "missing")
    with pytest.raises(OSError):
        dt.save_npy(tmp_path / "missing" / "a.npy", sample())


def test_npy_refuses_what_the_format_does_not_have(tmp_path):
    with pytest.raises(NotImplementedError):
        dt.save_npy(tmp_path / "a.npy", sample("bfloat16"))
    for bad in [1, 2], 3, None, np.ones(2):
        with pytest.raises(TypeError):
            dt.save_npy(tmp_path / "a.npy", bad)
    np.save(tmp_path / "s.npy", np.array(["text"]))
    with pytest.raises(NotImplementedError):
        dt.load_npy(tmp_path / "s.npy")
    assert sorted(os.listdir(tmp_path)) == ["s.npy"]


def test_maps_share_the_pages_of_the_file(tmp_path):
    path = tmp_path / "a.npy"
    dt.save_npy(path, sample())
    with pytest.raises(Exception):
        dt.load_npy(path, map="r").add_(1)
    t = dt.load_npy(path, map="c").add_(1)
    assert t.tolist() == [[1, 2, 3], [4, 5, 6]] and dt.load_npy(path).tolist() == [[0, 1, 2], [3, 4, 5]]
    for bad in "w", "", "rw":
        with pytest.raises(ValueError, match="map"):
            dt.load_npy(path, map=bad)
    with pytest.raises(TypeError):
        dt.load_npy(path, map=1)


def test_max_bytes_refuses_larger_tensors(tmp_path):
    path = tmp_path / "a.npy"
    dt.save_npy(path, sample())
    assert dt.load_npy(path, max_bytes=24).shape == (2, 3)
    for limit in 23, 1:
        with pytest.raises(ValueError):
            dt.load_npy(path, max_bytes=limit)
    for bad, error in (0, ValueError), (-1, (OverflowError, ValueError)), (2 ** 64, OverflowError), \
            ("1", TypeError), (1.5, TypeError):
        with pytest.raises(error):
            dt.load_npy(path, max_bytes=bad)


# ---- archives ----

@pytest.mark.parametrize("kind", FORMATS)
def test_archives_have_their_names_and_tensors(tmp_path, kind):
    save, load, open_ = FORMATS[kind]
    tensors = {"b": sample(), "a/ü": sample("int16").T, "empty": dt.zeros(0, 3), "s": dt.tensor(True)}
    path = tmp_path / "file"
    save(path, tensors)
    back = load(path)
    assert type(back) is dict and set(back) == set(tensors)
    for name, t in tensors.items():
        assert back[name].dtype is t.dtype and back[name].shape == t.shape and back[name].tolist() == t.tolist()
    save(path, {})
    assert load(path) == {}


@pytest.mark.parametrize("kind", FORMATS)
def test_archives_are_mappings(tmp_path, kind):
    save, load, open_ = FORMATS[kind]
    save(tmp_path / "f", {"a": sample(), "b": sample("int32")})
    with open_(tmp_path / "f") as archive:
        assert len(archive) == 2 and set(archive) == {"a", "b"}
        assert "a" in archive and "c" not in archive and 3 not in archive
        a = archive["a"]
        assert archive["a"] is not a and archive.get("c", 5) == 5
        assert {name: t.dtype for name, t in archive.items()} == {"a": dt.float32, "b": dt.int32}
        with pytest.raises(KeyError):
            archive["c"]
        for bad in 3, None, "a\0":
            with pytest.raises((TypeError, ValueError, KeyError)):
                archive[bad]
    for use in lambda: archive["a"], lambda: archive["c"]:
        with pytest.raises(ValueError, match="closed"):
            use()
    archive.close()
    assert a.tolist() == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize("kind", FORMATS)
def test_archives_are_refused_with_other_contents(tmp_path, kind):
    save, load, open_ = FORMATS[kind]
    path = tmp_path / "f"
    for bad, error in ([1], TypeError), (None, TypeError), ({1: sample()}, TypeError), ({"a": 3}, TypeError), \
            ({"a": np.ones(2)}, TypeError), ({"": sample()}, ValueError), ({"a\0": sample()}, ValueError), \
            ({"\ud800": sample()}, ValueError):
        with pytest.raises(error):
            save(path, bad)
    assert os.listdir(tmp_path) == []


def test_archives_may_be_closed_by_another_thread(tmp_path):
    dt.save_npz(tmp_path / "f", {"a": dt.ones(1 << 20)}, compressed=True)
    for _ in range(5):
        archive, results = dt.open_npz(tmp_path / "f"), []

        def read():
            try:
                results.append(archive["a"].sum().item())
            except ValueError as e:
                results.append(str(e))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for t in threads:
            t.start()
        archive.close()
        for t in threads:
            t.join()
        assert len(results) == 4 and all(r in (1 << 20, "the archive is closed") for r in results)


def test_npz_is_read_and_written_as_numpy_does(tmp_path):
    tensors = {name: sample(name) for name in DTYPES}
    for compressed in False, True:
        dt.save_npz(tmp_path / "a.npz", tensors, compressed=compressed)
        with np.load(tmp_path / "a.npz") as z:
            assert {k: z[k].tolist() for k in z} == {k: t.tolist() for k, t in tensors.items()}
        with zipfile.ZipFile(tmp_path / "a.npz") as z:
            method = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
            assert {i.compress_type for i in z.infolist()} == {method}
    np.savez_compressed(tmp_path / "b.npz", x=np.ones((3, 2)), y=np.arange(3))
    assert dt.load_npz(tmp_path / "b.npz")["y"].tolist() == [0, 1, 2]
    with pytest.raises(NotImplementedError):
        dt.load_npz(tmp_path / "b.npz", map="r")


def test_names_of_a_zip_file_that_are_not_utf_8_are_those_of_numpy(tmp_path):
    np.savez(tmp_path / "a.npz", xX=np.arange(3), yY=np.ones(2), z=np.zeros(1))
    data = (tmp_path / "a.npz").read_bytes().replace(b"xX.npy", b"x\xe4.npy").replace(b"yY.npy", b"\xff\x80.npy")
    (tmp_path / "a.npz").write_bytes(data)
    with np.load(tmp_path / "a.npz") as z:
        expected = {name: z[name].tolist() for name in z}
    assert len(expected) == 3
    assert {name: t.tolist() for name, t in dt.load_npz(tmp_path / "a.npz").items()} == expected
    with dt.open_npz(tmp_path / "a.npz") as archive:
        assert archive["x\u03a3"].tolist() == [0, 1, 2] and "x\u03a3" in archive and "x\u4e00" not in archive
        for name in "x", "\u4e00":
            with pytest.raises(KeyError):
                archive[name]  # pylint: disable=pointless-statement


def test_deflated_bombs_are_refused_before_memory_is_allocated(tmp_path):
    np.savez_compressed(tmp_path / "a.npz", x=np.zeros(1 << 24))
    with pytest.raises(ValueError):
        dt.load_npz(tmp_path / "a.npz", max_bytes=1 << 20)


def test_max_bytes_limits_all_tensors_together(tmp_path):
    for kind, (save, load, open_) in FORMATS.items():
        save(tmp_path / kind, {"a": sample(), "b": sample()})
        assert len(load(tmp_path / kind, max_bytes=48)) == 2
        with pytest.raises(ValueError):
            load(tmp_path / kind, max_bytes=47)


# ---- safetensors ----

def test_safetensors_have_all_dtypes_and_metadata(tmp_path):
    path = tmp_path / "f"
    names = [n for n in DTYPES if n != "complex128"] + ["bfloat16", "float8_e4m3fn", "float8_e5m2"]
    dt.save_safetensors(path, {n: sample(n) for n in names}, metadata={"format": "pt", "ü": "ö"})
    with dt.open_safetensors(path) as archive:
        assert archive.metadata == {"format": "pt", "ü": "ö"}
        for n in names:
            assert archive[n].dtype is getattr(dt, n) and archive[n].double().tolist() == sample(n).double().tolist()
    data = path.read_bytes()
    header = json.loads(data[8:8 + struct.unpack("<Q", data[:8])[0]])
    assert header["bfloat16"]["dtype"] == "BF16" and header["__metadata__"]["format"] == "pt"
    for bad in {"a": 1}, {1: "a"}, {"a": None}:
        with pytest.raises(TypeError):
            dt.save_safetensors(path, {}, metadata=bad)
    with pytest.raises(NotImplementedError):
        dt.save_safetensors(path, {"a": sample("complex128")})
    assert dt.open_safetensors(path).metadata["format"] == "pt"


def test_safetensors_map(tmp_path):
    dt.save_safetensors(tmp_path / "f", {"a": sample(), "b": sample("int8")})
    tensors = dt.load_safetensors(tmp_path / "f", map="r")
    assert tensors["b"].tolist() == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(Exception):
        tensors["a"].zero_()


# ---- save() and load() ----

def test_load_finds_the_format(tmp_path):
    path = tmp_path / "file"
    dt.save({"a": sample()}, path)
    assert dt.load(path)["a"].tolist() == sample().tolist()
    dt.save_npz(path, {"a": sample()})
    assert dt.load(path, map="r")["a"].tolist() == sample().tolist()
    dt.save_npz(path, {})
    assert dt.load(path) == {}
    dt.save_npy(path, sample())
    assert dt.load(path, max_bytes=24).tolist() == sample().tolist()
    pt_files.write(path, pt_files.tensor())
    assert dt.load(path).tolist() == sample().tolist()


@pytest.mark.parametrize("bad", [sample(), [sample()], 3, None, "x"])
def test_save_refuses_what_is_no_dict_of_tensors(tmp_path, bad):
    with pytest.raises(TypeError):
        dt.save(bad, tmp_path / "f")
    with pytest.raises(TypeError):
        dt.save({"a": bad} if not isinstance(bad, dt.Tensor) else {3: bad}, tmp_path / "f")
    assert os.listdir(tmp_path) == []


def test_a_failed_save_keeps_the_old_file(tmp_path):
    dt.save({"a": sample()}, tmp_path / "f")
    old = (tmp_path / "f").read_bytes()
    with pytest.raises(NotImplementedError):
        dt.save({"a": sample("complex128")}, tmp_path / "f")
    assert (tmp_path / "f").read_bytes() == old and os.listdir(tmp_path) == ["f"]


def test_results_of_operators_and_gradients_are_saved(tmp_path):
    w = dt.ones(2, requires_grad=True)
    dt.save({"w": w, "y": w * 2}, tmp_path / "f")
    assert not dt.load(tmp_path / "f")["w"].requires_grad and dt.load(tmp_path / "f")["y"].tolist() == [2, 2]


@pytest.mark.parametrize("kind", ["npy", "npz", "safetensors"])
def test_mutated_files_are_read_or_refused(tmp_path, kind):
    path, rng = tmp_path / "f", random.Random(3)
    {"npy": lambda: dt.save_npy(path, sample()), "npz": lambda: dt.save_npz(path, {"a": sample()}, compressed=True),
     "safetensors": lambda: dt.save({"a": sample(), "b": sample("bool")}, path)}[kind]()
    data, loaded = path.read_bytes(), 0
    for _ in range(MUTATIONS):
        b = bytearray(data)
        for _ in range(rng.choice((1, 1, 2, 4))):
            at = rng.randrange(len(b))
            if rng.random() < 0.7:
                b[at] = rng.choice((0, 255, rng.randrange(256), b[at] ^ 1 << rng.randrange(8)))
            else:
                del b[at:at + rng.randrange(1, 9)]
        path.write_bytes(b)
        try:
            dt.load(path, max_bytes=1 << 20)
            loaded += 1
        except (ValueError, NotImplementedError, OverflowError):
            pass
    assert loaded < MUTATIONS


def test_calls_do_not_grow_memory(tmp_path):
    path = tmp_path / "f"
    dt.save({"a": sample(), "b": sample("int8")}, path)
    pathlib.Path(tmp_path / "bad").write_bytes(path.read_bytes()[:-1])

    def call():
        dt.load(path)
        dt.load(path, map="r")
        dt.save({"a": sample()}, tmp_path / "g")
        with dt.open_safetensors(path) as archive:
            archive["a"]
        for wrong in lambda: dt.load(tmp_path / "bad"), lambda: dt.save({"a": 1}, path), lambda: archive["a"]:
            with pytest.raises((ValueError, TypeError)):
                wrong()

    assert growth(call, 1000) < 1024
    assert len(os.listdir("/proc/self/fd")) < 100
