# SPDX-License-Identifier: LGPL-2.1-only OR MIT
"""Layers of the kernel module: a file uses only what lower files define.

The order is that of the objects in Kbuild, lowest first. X.c, X.h and X_PART.c are one layer. A header
without a source file is as high as the highest header it includes. Two things are checked, in the
text, so that no kernel is needed: the includes of a file, and the functions and variables of other files
that it names.
"""
import os
import re

TREE = os.path.normpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../.."))
# Tests are above the folder that they test.
TESTS = re.compile(r"/test(_\w+)?\.[ch]$")
DEFINED = re.compile(r"^(?!static|extern|typedef|#|//|/\*|\s)[\w *]*?\b(tensor_\w+)(?:\(|;|\[| = |$)", re.M)
MADE = re.compile(r"^DEFINE_\w+\((tensor_\w+)", re.M)
COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)


def order():
    """Sources by layer, as Kbuild lists their objects."""
    text = open(f"{TREE}/Kbuild").read().replace("\\\n", " ")
    alloc = re.search(r"^alloc := (.*)$", text, re.M).group(1).split()
    sources = [f"kmod/alloc/{o[:-2]}.c" for o in alloc]
    for line in re.findall(r"^tensor-y \+= (.*)$", text, re.M):
        sources += [f"{o[:-2]}.c" for o in line.split()]
    return sources


def includes(path, text):
    """Headers of the tree that a file includes, as paths from the top."""
    for name in re.findall(r'^#include "([^"]+)"', text, re.M):
        yield os.path.normpath(os.path.join(os.path.dirname(path), name))


def header_rank(path, ranks, texts, seen):
    """A header without a source is as high as the highest header that it includes."""
    if path in ranks or path in seen:
        return ranks.get(path, -1)
    seen.add(path)
    ranks[path] = max([header_rank(h, ranks, texts, seen) for h in includes(path, texts[path])], default=-1)
    return ranks[path]


def wrong_includes(texts, ranks):
    for path, text in texts.items():
        for header in includes(path, text):
            if path.startswith((header[:-2] + ".", header[:-2] + "_")):
                continue
            if ranks[header] > ranks[path] or (ranks[header] == ranks[path] and path.endswith(".c")):
                yield f"{path} includes {header}, which is not lower"


def wrong_names(texts, ranks, sources):
    owner = {}
    for path in sources:
        for name in DEFINED.findall(texts[path]) + MADE.findall(texts[path]):
            owner[name] = path
    for path in sources:
        for name in sorted(set(re.findall(r"\btensor_\w+", texts[path]))):
            if name in owner and ranks[owner[name]] > ranks[path]:
                yield f"{path} names {name} of {owner[name]}, which is higher"


def cycles(texts):
    """Headers that include each other."""
    def walk(path, trail):
        if path in trail:
            yield " -> ".join(trail[trail.index(path):] + [path])
            return
        for header in includes(path, texts[path]):
            yield from walk(header, trail + [path])
    for path in texts:
        if path.endswith(".h"):
            yield from walk(path, [])


def checks():
    """(promise, faults)"""
    files = [os.path.relpath(os.path.join(folder, name), TREE) for folder, _, names in os.walk(f"{TREE}/kmod")
             for name in names if name.endswith((".c", ".h"))]
    texts = {f: COMMENT.sub("", open(f"{TREE}/{f}").read()) for f in files if not TESTS.search(f)}
    sources = order()
    ranks = {}
    for n, path in enumerate(sources):
        whole = re.sub(r"_\w+(?=\.c$)", "", path)
        ranks[path] = ranks.get(whole, n)
        if path[:-2] + ".h" in texts:
            ranks[path[:-2] + ".h"] = n
    # The folder alloc/ has one header for all of its files.
    ranks["kmod/alloc/alloc.h"] = -1
    missing = [f"{f} is in no line of Kbuild" for f in texts if f.endswith(".c") and f not in ranks]
    for path in texts:
        header_rank(path, ranks, texts, set())
    return [("every_source_of_the_module_has_a_layer", missing),
            ("headers_of_the_module_do_not_include_each_other_in_a_circle", cycles(texts)),
            ("files_of_the_module_include_only_lower_headers", wrong_includes(texts, ranks)),
            ("files_of_the_module_name_only_lower_functions", wrong_names(texts, ranks, sources))]
