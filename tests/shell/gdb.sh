#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The pretty printers of tools/gdb: in a process, in a core dump, loaded automatically after an install, and for
# invalid pointers.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
command -v gdb >/dev/null || { echo "gdb is not installed"; exit 77; }

cat >"$tmp/prog.c" <<'END'
#include <tensor/tensor.h>

__attribute__((noinline)) static void stop_here(void)
{
	__asm__ volatile("");
}

int main(void)
{
	static const float numbers[] = { 0.5, -1, 2, 0.25, 1, -0.5 };
	tensor *of[TENSOR_DTYPE_COUNT] = { NULL }, *bad = (tensor *)16, *junk = (tensor *)numbers, *none = NULL;
	tensor *x = tensor_from_data(numbers, TENSOR_SHAPE(2, 3), TENSOR_OPTIONS(0));
	tensor *view = tensor_transpose(x, 0, 1), *released = tensor_neg(x);
	tensor *many = tensor_arange(TENSOR_SCALAR(100), TENSOR_OPTIONS(0));
	tensor *scalar = tensor_sum(x), *empty = tensor_zeros(TENSOR_SHAPE(0, 4), TENSOR_OPTIONS(0)), *y;
	tensor_node *node;

	for (int d = 1; d < TENSOR_DTYPE_COUNT; d++)
		of[d] = tensor_full(TENSOR_SHAPE(1), TENSOR_SCALAR(1), TENSOR_OPTIONS(.dtype = d));
	tensor_set_requires_grad(x, true);
	y = tensor_mul(x, x);
	node = tensor_grad_fn(y);
	tensor_release(released);
	stop_here();
	return !(bad && junk && !none && view && many && scalar && empty && node && of[1]);
}
END
source=tools/gdb/libtensor-gdb.py
prints=(-ex 'print x' -ex 'print view' -ex 'print *y' -ex 'print many' -ex 'print scalar' -ex 'print empty' -ex 'print released'
	-ex 'print bad' -ex 'print junk' -ex 'print none' -ex 'print node' -ex 'print x->storage' -ex 'print *of@18')

# debug COMMAND...: runs gdb on the program without the settings of the user.
debug() { gdb -nx -batch -ex 'set confirm off' -ex 'set debuginfod enabled off' "$@" 2>&1; }

compile() {
	gcc -std=gnu11 -g -O0 -Wall -Wextra -Werror -Iinclude -I"$build/gen/include" "$tmp/prog.c" -o "$tmp/prog" -L"$build" \
		-ltensor -Wl,-rpath,"$build"
	debug -ex "source $source" -ex 'break stop_here' -ex run -ex "generate-core-file $tmp/core" -ex up "${prints[@]}" \
		"$tmp/prog" >"$tmp/live"
}

# says TEXT FILE: passes if a line of the output contains the text.
says() { grep -qF -- "$1" "$2" || { echo "not in the output: $1"; cat "$2"; return 1; }; }

shape_dtype_device_strides_gradient_and_numbers_are_shown() {
	says ' tensor f32 [2, 3], cpu, strides [3, 1], requires_grad {0.5, -1, 2, 0.25, 1, -0.5}' "$tmp/live"
	says ' tensor f32 [2, 3], cpu, strides [3, 1], requires_grad, grad_fn MulBackward {0.25, 1, 4, 0.0625, 1, 0.25}' "$tmp/live"
	says ' tensor f32 [], cpu, strides [] {2.25}' "$tmp/live"
	says ' tensor f32 [0, 4], cpu, strides [4, 1] {}' "$tmp/live"
}

numbers_of_a_view_are_in_its_order() {
	says ' tensor f32 [3, 2], cpu, strides [1, 3], view of 0x' "$tmp/live"
	says '{0.5, 0.25, -1, 1, 2, -0.5}' "$tmp/live"
}

large_tensor_shows_its_first_numbers() { says '{0, 1, 2, 3, 4, 5, 6, 7, ...}' "$tmp/live"; }

# The table of dtypes in the script equals that of the library.
every_dtype_has_its_name_and_numbers() {
	local name
	for name in u8 i8 i16 i32 i64 f16 bf16 f32 f64 u16 u32 u64 f8_e4m3fn f8_e5m2; do
		says "tensor $name [1], cpu, strides [1] {1}" "$tmp/live"
	done
	says 'tensor bool [1], cpu, strides [1] {true}' "$tmp/live"
	says 'tensor c64 [1], cpu, strides [1] {1+0j}' "$tmp/live"
	says 'tensor c128 [1], cpu, strides [1] {1+0j}' "$tmp/live"
	for name in $(sed -n 's/^	TENSOR_\([A-Z0-9_]*\),.*/\L\1/p' <(sed -n '/^enum tensor_dtype {/,/^};/p' include/tensor/types.h)); do
		grep -q "'$name'" $source
	done
}

storage_is_shown() { grep -Eq ' storage [0-9]+ bytes at 0x[0-9a-f]+, cpu, [0-9]+ references, version ' "$tmp/live"; }

node_is_shown() { says ' of f32 [2, 3], to [AccumulateGrad, AccumulateGrad]' "$tmp/live"; }

released_tensor_is_named() { says ' released tensor' "$tmp/live"; }

bad_pointers_are_named_and_nothing_fails() {
	says '0x10 <Cannot access memory at address' "$tmp/live"
	says '<no tensor is here>' "$tmp/live"
	says '= NULL' "$tmp/live"
	fails grep -E 'Python Exception|Traceback|Error' "$tmp/live"
}

core_dump_shows_the_same() {
	debug -ex "source $source" -ex up "${prints[@]}" "$tmp/prog" "$tmp/core" >"$tmp/dump"
	diff <(grep '^\$' "$tmp/live") <(grep '^\$' "$tmp/dump")
}

library_without_debug_information_is_named() {
	mkdir -p "$tmp/stripped"
	strip -g -o "$tmp/stripped/libtensor.so.0" "$build/libtensor.so.0"
	debug -ex "set environment LD_LIBRARY_PATH $tmp/stripped" -ex "source $source" -ex 'break stop_here' -ex run -ex up \
		-ex 'print x' "$tmp/prog-path" >"$tmp/bare"
	says '<no debug information for libtensor>' "$tmp/bare"
}

gdb_loads_the_installed_script_automatically() {
	local version
	version=$(sed -n 's/^VERSION *:= *//p' Makefile)
	# `make install-lib` would build the library again with other options.
	make --no-print-directory install-dev PREFIX="$tmp/p" >/dev/null
	cp "$build/libtensor.so.0" "$tmp/p/lib/libtensor.so.$version"
	ln -s "libtensor.so.$version" "$tmp/p/lib/libtensor.so.0"
	debug -ex "add-auto-load-safe-path $tmp" -ex "add-auto-load-scripts-directory $tmp/p/share/gdb/auto-load" \
		-ex "set environment LD_LIBRARY_PATH $tmp/p/lib" -ex 'break stop_here' -ex run -ex up -ex 'print x' "$tmp/prog-path" >"$tmp/auto"
	says ' tensor f32 [2, 3]' "$tmp/auto"
}

if ! (set -e; compile) >"$tmp/out" 2>&1; then
	cat "$tmp/out"
	exit 1
fi
# Skipped where ptrace() is not permitted.
if grep -Eq 'ptrace|Operation not permitted|Could not trace' "$tmp/live"; then
	echo "gdb may not trace processes here: $(grep -Em1 'ptrace|permitted|trace' "$tmp/live")"
	exit 77
fi
# Without a run path, LD_LIBRARY_PATH chooses the library.
gcc -std=gnu11 -g -O0 -Iinclude -I"$build/gen/include" "$tmp/prog.c" -o "$tmp/prog-path" -L"$build" -ltensor || exit 1
check_all shape_dtype_device_strides_gradient_and_numbers_are_shown numbers_of_a_view_are_in_its_order \
	large_tensor_shows_its_first_numbers every_dtype_has_its_name_and_numbers storage_is_shown node_is_shown \
	released_tensor_is_named bad_pointers_are_named_and_nothing_fails core_dump_shows_the_same \
	library_without_debug_information_is_named gdb_loads_the_installed_script_automatically
