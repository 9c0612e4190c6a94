#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The program of docs/walk.md calls the functions that the transcripts of the page show, with its gdb commands.
set -u
. tests/shell/check.bash
build=$(realpath "${1:-build}")
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# block LANGUAGE: prints all blocks of this language.
block() { awk -v begin="^\`\`\`$1\$" '$0 ~ begin { on = 1; next } /^```$/ { on = 0 } on' docs/walk.md; }

# The function names of a backtrace, without the suffix of the instruction-set level.
frames() { sed -nE 's/^#[0-9]+ +([a-zA-Z_0-9]+) \(.*/\1/p' | sed -E 's/_v[234]$//'; }

# contains_in_order FILE FILE: passes if the first file contains the lines of the second one in order.
contains_in_order() {
	awk 'NR == FNR { have[NR] = $0; n = NR; next }
		{ for (i++; i <= n && have[i] != $0; i++); if (i > n) { print $0 " is missing or in another place"; exit 1 } }' "$1" "$2"
}

program_of_the_page_runs() {
	block c >"$tmp/walk.c"
	gcc -g "$tmp/walk.c" -o "$tmp/walk" -Iinclude -I"$build/gen/include" -L"$build" -ltensor -Wl,-rpath,"$build"
	"$tmp/walk"
}

transcripts_are_those_of_the_sources() {
	command -v gdb >/dev/null || { echo "no gdb"; exit 77; }
	block gdb >"$tmp/walk.gdb"
	gdb -nx -q -batch -ex 'set breakpoint pending on' -ex 'set print frame-arguments none' -ex 'set print address off' \
		-x "$tmp/walk.gdb" "$tmp/walk" >"$tmp/out" 2>&1
	frames <"$tmp/out" >"$tmp/have"
	block text | frames >"$tmp/page"
	contains_in_order "$tmp/have" "$tmp/page" || { cat "$tmp/out"; false; }
	[ "$(wc -l <"$tmp/page")" -gt 20 ]
}

check_all program_of_the_page_runs transcripts_are_those_of_the_sources
