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
	every_example_is_short_and_in_the_readme every_example_compiles_with_clang
