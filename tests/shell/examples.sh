#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The programs of examples/ check their own results: as they are, with TENSOR_DEBUG=1, and with a trace.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT

# each COMMAND...: the command, with each example's program at its end, succeeds.
each() {
	local source
	for source in examples/*.c; do
		"$@" "$build/examples/$(basename "$source" .c)"
	done
}

every_example_succeeds() { each timeout 60; }
every_example_succeeds_with_checks_of_memory() { each timeout 60 env TENSOR_DEBUG=1; }
every_example_succeeds_while_it_is_traced() { each timeout 60 env TENSOR_TRACE="$tmp/trace.json"; }

every_example_is_short_and_in_the_readme() {
	local source
	for source in examples/*.c; do
		[ "$(wc -l <"$source")" -le 80 ]
		grep -qF "($source)" README.md
	done
	[ "$(ls examples/*.c | wc -l)" -ge 5 ]
}

# Also by a compiler that warns of other things.
every_example_compiles_with_clang() {
	local source
	command -v clang >/dev/null || { echo "no clang"; exit 77; }
	for source in examples/*.c; do
		clang -std=gnu11 -O2 -Wall -Wextra -Werror -Iinclude -I"$build/gen/include" -fsyntax-only "$source"
	done
}

check_all every_example_succeeds every_example_succeeds_with_checks_of_memory every_example_succeeds_while_it_is_traced \
	every_example_is_short_and_in_the_readme every_example_compiles_with_clang
