# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Measures build times on two cores: a clean build, a build after an edit of a kernel, and one after
an edit of an operator's entry; the CUDA plugin separately. It builds a copy of the tree, so that the
tree's own build is not changed."""
import os
import shutil
import subprocess
import time


def copy_tree(to):
    files = subprocess.run(["git", "ls-files", "-z", "--cached", "--others",
                            "--exclude-standard"], check=True, capture_output=True).stdout
    for name in files.decode().rstrip("\0").split("\0"):
        if os.path.isfile(name):
            path = os.path.join(to, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            shutil.copy2(name, path)


def make(tree, *words):
    """Seconds of make -j2, without the variables of the calling make."""
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "MFLAGS")}
    start = time.monotonic()
    subprocess.run(["make", "-C", tree, "-j2", *words], check=True, env=env, stdout=subprocess.DEVNULL)
    return time.monotonic() - start


def edit(tree, name, old, new):
    path = os.path.join(tree, name)
    with open(path) as f:
        text = f.read()
    assert old in text, name
    with open(path, "w") as f:
        f.write(text.replace(old, new, 1))


def measure(scratch):
    tree = os.path.join(scratch, "tree")
    shutil.rmtree(tree, ignore_errors=True)
    copy_tree(tree)
    seconds = [("clean build, two cores", make(tree, "NVCC="), 300)]
    if shutil.which("nvcc"):
        seconds.append(("the CUDA plugin after that", make(tree), None))
    edit(tree, "lib/kernels/cpu/pointwise/arith.c", "(T)(x + y)", "(T)(y + x)")
    seconds.append(("edit of one kernel", make(tree, "NVCC="), 5))
    edit(tree, "lib/schema/ops/shape/factory.yaml", "  doc: Like self in shape", "  doc: As self in shape")
    seconds.append(("edit of one operator's entry", make(tree, "NVCC="), 5))
    edit(tree, "lib/schema/ops/pointwise/unary.yaml", "isneginf(Tensor self)", "isneginf(Tensor input)")
    seconds.append(("edit of an operator's signature", make(tree, "NVCC="), 5))
    shutil.rmtree(tree)
    return [{"work": w, "seconds": s, "mark": m, "met": m is None or s <= m}
            for w, s, m in seconds]
