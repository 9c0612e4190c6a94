#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# <tensor/dlpack.h> and PyTorch's <ATen/dlpack.h> (`make bench-peers` installs it) have the binary interface that
# tests/unit/dlpack_layout.h records, in C and in C++, and a program can include both in either order.
set -u
. tests/shell/check.bash
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
languages=("gcc -x c -std=gnu11" "g++ -x c++ -std=c++17")

# compiles LINE...: compiles the lines in both languages.
compiles() {
	local with
	for with in "${languages[@]}"; do
		command -v "${with%% *}" >/dev/null || continue
		printf '%s\n' "$@" | $with -Wall -Wextra -Werror -Iinclude -Itests/unit ${torch:+-isystem "$torch/include"} \
			-fsyntax-only -
	done
}

# Sets $torch to the folder of the package; skips the test if PyTorch is not installed.
needs_torch() {
	local python
	python=$(bench/peers python 2>/dev/null) || { echo "PyTorch is not installed: make bench-peers"; exit 77; }
	torch=$("$python" -c 'import importlib.util, os
print(os.path.dirname(importlib.util.find_spec("torch").origin))')
}

our_header_has_the_recorded_layout() {
	compiles '#include <tensor/dlpack.h>' '#include "dlpack_layout.h"'
}

header_of_pytorch_has_the_recorded_layout() {
	needs_torch
	compiles '#include <ATen/dlpack.h>' '#include "dlpack_layout.h"'
}

# The record decides something: each other number is refused.
another_layout_is_refused() {
	local change
	for change in 's/int32_t ndim;/int64_t ndim;/' 's/uint64_t flags;/uint32_t flags;/' 's/kDLTrn = 18/kDLTrn = 19/' \
		's/uint16_t lanes;/uint8_t lanes;/' 's/DLPackExchangeAPIHeader header;//' \
		's/MINOR_VERSION 3/MINOR_VERSION 2/' 's/PADDED 4ul/PADDED 8ul/' 's/int32_t device_id,/int64_t device_id,/'; do
		mkdir -p "$tmp/tensor"
		sed "$change" include/tensor/dlpack.h >"$tmp/tensor/dlpack.h"
		fails cmp -s "$tmp/tensor/dlpack.h" include/tensor/dlpack.h
		printf '#include "%s"\n#include "dlpack_layout.h"\n' "$tmp/tensor/dlpack.h" >"$tmp/try.c"
		fails gcc -Iinclude -Itests/unit -fsyntax-only "$tmp/try.c" 2>"$tmp/said"
		grep -q 'static assertion failed' "$tmp/said"
	done
}

both_headers_can_be_included() {
	needs_torch
	local call='tensor *f(DLManagedTensorVersioned *m) { return tensor_from_dlpack(m); }'
	compiles '#include <ATen/dlpack.h>' '#include <tensor/dlpack.h>' '#include "dlpack_layout.h"' "$call"
	compiles '#include <tensor/dlpack.h>' '#include <ATen/dlpack.h>' '#include "dlpack_layout.h"' "$call"
}

check_all our_header_has_the_recorded_layout header_of_pytorch_has_the_recorded_layout another_layout_is_refused \
	both_headers_can_be_included
