#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# tests/static/library-abi finds changes of public headers that break compiled programs, and refuses to record them.
set -u
command -v abidw >/dev/null || { echo "needs abidw (Debian: abigail-tools)"; exit 77; }
. tests/shell/check.bash
library=$(readlink -f "$1/libtensor.so.0")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
mkdir -p "$tmp/tests/static" "$tmp/build/gen"
cp -r include "$tmp"
cp -r "$1/gen/include" "$tmp/build/gen"
cp tests/static/library-abi tests/static/libtensor.abi "$tmp/tests/static"
cd "$tmp" || exit 1

# found HEADER SED MESSAGE: with this change of the header there is such a message, and --accept records nothing.
found() {
	local header=include/tensor/$1
	cp "$header" saved
	cp tests/static/libtensor.abi saved.abi
	sed -i "$2" "$header"
	fails cmp "$header" saved >/dev/null
	fails tests/static/library-abi "$library" --accept >said 2>&1
	cp saved "$header"
	grep -- "$3" said || { cat said; return 1; }
	cmp tests/static/libtensor.abi saved.abi
}

record_is_complete() { tests/static/library-abi "$library"; }

number_of_a_mode_cannot_change() {
	found types.h '/^enum tensor_bag_mode/,/^}/{/TENSOR_BAG_MAX/d}' 'removed: .*TENSOR_BAG_MAX'
	found types.h 's/TENSOR_BAG_MAX,/TENSOR_BAG_MAX = 7,/' 'changed: .*TENSOR_BAG_MAX: 2 -> 7'
}

number_of_a_macro_cannot_change() {
	found types.h 's/\(define TENSOR_MAX_DIMS\).*/\1 17/' 'changed: macro TENSOR_MAX_DIMS: 16 -> 17'
	found autograd.h '/define TENSOR_RETAIN_GRAPH/d' 'removed: macro TENSOR_RETAIN_GRAPH'
	found buffer.h 's/\(define TENSOR_BUFFER_SEAL\)[ \t].*/\1 (1u << 9)/' 'changed: macro TENSOR_BUFFER_SEAL: 8 -> 512'
}

type_of_an_object_cannot_change() {
	found types.h 's/extern tensor .const tensor_none;/extern const int tensor_none;/' 'changed: object tensor_none'
}

alignment_of_a_struct_cannot_change() {
	found types.h 's/^} tensor_ints;/} __attribute__((packed)) tensor_ints;/' 'changed: alignment of struct tensor_ints: 8 -> 1'
	found types.h 's/^} tensor_ints;/} __attribute__((aligned(16))) tensor_ints;/' 'changed: alignment of struct tensor_ints: 8 -> 16'
}

check_all record_is_complete number_of_a_mode_cannot_change number_of_a_macro_cannot_change \
	type_of_an_object_cannot_change alignment_of_a_struct_cannot_change
