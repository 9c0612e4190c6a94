#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The programs of examples/ check their own results: with default settings, TENSOR_DEBUG=1 and TENSOR_TRACE.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# each COMMAND...: runs the command with each example as its last argument.
each() {
	local source
	for source in examples/*.c; do
		"$@" "$build/examples/$(basename "$source" .c)"
	done
}

every_example_succeeds() { each timeout 60; }
every_example_succeeds_with_memory_checks() { each timeout 60 env TENSOR_DEBUG=1; }
every_example_succeeds_with_a_trace() { each timeout 60 env TENSOR_TRACE="$tmp/trace.json"; }

a_program_in_python_consumes_what_one_in_c_produces() {
	local python=${PYTHON:-python3}
	[ -d "$build/python/devtensor" ] || { echo "no Python package in this build"; exit 77; }
	PYTHONPATH="$build/python" "$python" -c "import devtensor" || exit 77
	PYTHONPATH="$build/python" timeout 60 "$build/examples/produce" "$python" -B examples/python/consume.py |
		grep -x "received 100 batches"
}

every_example_is_short_and_in_the_readme() {
	local source
	for source in examples/*.c; do
		[ "$(wc -l <"$source")" -le 80 ]
		grep -qF "($source)" README.md
	done
	[ "$(ls examples/*.c | wc -l)" -ge 5 ]
}

# clang has other warnings than gcc.
every_example_compiles_with_clang() {
	local source
	command -v clang >/dev/null || { echo "no clang"; exit 77; }
	for source in examples/*.c; do
		clang -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude -I"$build/gen/include" -fsyntax-only "$source"
	done
}

check_all every_example_succeeds every_example_succeeds_with_memory_checks every_example_succeeds_with_a_trace \
	a_program_in_python_consumes_what_one_in_c_produces \
	every_example_is_short_and_in_the_readme every_example_compiles_with_clang
