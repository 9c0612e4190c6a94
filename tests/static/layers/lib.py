# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Layers of the library: a file uses only its own layer and lower ones.

The order is that of the table "Layers of the library" in docs/architecture.md, highest first. A folder that
is not in the table belongs to the layer of the folder that contains it. The includes of a file are
checked and, in the objects of a build, the symbols of other files that it uses. Generated code is left out: its
declarations belong to the layer dispatch, its tables name the functions of all layers.
"""
import collections
import os
import re
import subprocess
import sys

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
# Plugins are built only if their libraries are installed.
PLUGINS = ("lib/kernels/cuda", "lib/kernels/onednn", "lib/group/mpi", "lib/remote/ucx")
DEFINES, USES = "TDRBVWC", "U"


def layers():
    """Folders of the table, lowest first."""
    text = open(f"{TREE}/docs/architecture.md").read()
    part = re.search(r"^## Layers of the library$(.*?)^## ", text, re.M | re.S)
    rows = re.findall(r"^\| `([\w/]+)/?`", part.group(1), re.M) if part else []
    return list(reversed([f"lib/{row}" if row != "lib" else row for row in rows]))


def rank_of(path, order):
    """The layer of a file: the longest folder of the table that contains it."""
    folder = os.path.dirname(path)
    while folder and folder not in order:
        folder = os.path.dirname(folder)
    return order.index(folder) if folder else None


def sources():
    return sorted(os.path.relpath(os.path.join(folder, name), TREE) for folder, _, names in os.walk(f"{TREE}/lib")
                  for name in names if name.endswith((".c", ".h", ".cu", ".cuh")))


def included(files):
    """file -> headers and included sources of lib that it includes."""
    known, edges = set(files), {}
    for path in files:
        edges[path] = set()
        for name in re.findall(r'^\s*#\s*include "([^"]+)"', open(f"{TREE}/{path}").read(), re.M):
            for candidate in (f"lib/{name}", os.path.normpath(os.path.join(os.path.dirname(path), name))):
                if candidate in known:
                    edges[path].add(candidate)
                    break
    return edges


def objects(files, build):
    """object -> source, of existing sources, for one instruction-set level."""
    known, found = set(files), {}
    for folder, _, names in os.walk(f"{build}/obj/lib"):
        for name in sorted(names):
            if not name.endswith(".o"):
                continue
            path = os.path.join(folder, name)
            source = re.sub(r"(\.v\d)?\.o$", ".c", os.path.relpath(path, f"{build}/obj"))
            if source in known and source not in found.values():
                found[path] = source
    return found


def used(files, build):
    """file -> {file: symbols of it that the first one uses}"""
    place = objects(files, build)
    owner, wants = {}, collections.defaultdict(set)
    for line in subprocess.run(["nm", "-A", *place], capture_output=True, text=True, check=True).stdout.splitlines():
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind in DEFINES:
            owner[symbol] = place[path]
        elif kind in USES:
            wants[place[path]].add(symbol)
    edges = {path: collections.defaultdict(set) for path in place.values()}
    for path, symbols in wants.items():
        for symbol in symbols & owner.keys():
            if owner[symbol] != path:
                edges[path][owner[symbol]].add(symbol)
    return edges


def circles(edges):
    """Strongly connected components of more than one file (Tarjan)."""
    index, low, stack, out = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in edges.get(node, ()):
            if other not in index:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                out.append(" ".join(sorted(part)))
    sys.setrecursionlimit(10000)
    for node in sorted(edges):
        if node not in index:
            visit(node)
    return out


def upward(edges, order, verb):
    for path, others in edges.items():
        for other in others:
            if rank_of(other, order) is None or rank_of(path, order) is None:
                continue
            if rank_of(other, order) > rank_of(path, order):
                what = ", ".join(sorted(others[other])[:4]) + " of " if isinstance(others, dict) else ""
                yield f"{path} {verb} {what}{other}, which is higher"


def checks(build):
    """(promise, faults)"""
    order, files = layers(), sources()
    headers, symbols = included(files), used(files, build)
    missing = [f"{row} has no folder" for row in order if not os.path.isdir(f"{TREE}/{row}")]
    missing += [f"{path} is in no layer" for path in files if rank_of(path, order) is None]
    missing += [f"no object of {path} in {build}: build it first" for path in files if path.endswith(".c") and
                not path.startswith(PLUGINS) and path not in symbols]
    return [("every_source_of_the_library_has_a_layer", missing),
            ("files_of_the_library_do_not_include_each_other_in_a_circle", circles(headers)),
            ("files_of_the_library_include_only_lower_layers", upward(headers, order, "includes")),
            ("files_of_the_library_do_not_use_each_other_in_a_circle", circles(symbols)),
            ("files_of_the_library_use_only_lower_layers", upward(symbols, order, "uses"))]
