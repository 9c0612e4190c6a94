#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# `make help` lists each public target with one line: packaging/targets.txt has a row for every phony
# target of the makefiles, and no row for a target that does not exist.
set -u
table=packaging/targets.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
failed=0
n=0

# check NAME COMMAND...: the command passes and prints nothing.
check() {
	local name=$1 out
	shift
	n=$((n + 1))
	if out=$("$@" 2>&1) && [ -z "$out" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		printf '%s\n' "$out" | sed 's/^/# /'
		failed=1
	fi
}

# File names are no public targets, and folders are the order-only targets of install.
make --no-print-directory -pRrn help 2>/dev/null | sed -n 's/^\.PHONY: //p' | tr ' ' '\n' |
	grep -v / | sort -u >"$tmp/phony"
grep -v '^#' $table | cut -f2 | sort >"$tmp/rows"
make --no-print-directory help >"$tmp/help"

targets_without_row() { comm -23 "$tmp/phony" "$tmp/rows" | sed "s|$| has no row in $table|"; }

# no-onednn exists where oneDNN is missing.
rows_without_target() { comm -13 "$tmp/phony" "$tmp/rows" | grep -vx no-onednn | sed 's/$/ is no phony target/'; }

rows_that_are_twice() { uniq -d "$tmp/rows"; }

malformed_rows() { grep -v '^#' $table | awk -F'\t' 'NF != 3 || $3 == "" { print "not three fields: " $0 }'; }

rows_not_printed() {
	grep -v '^#\|^internal' $table | cut -f2 | while read -r target; do
		[ "$(grep -c "^  $target  *[^ ]" "$tmp/help")" = 1 ] || echo "$target is not in make help once"
	done
}

internal_rows_printed() {
	sed -n 's/^internal\t\([^\t]*\)\t.*/\1/p' $table | while read -r target; do
		! grep -q "^  $target " "$tmp/help" || echo "$target is internal"
	done
}

echo "1..6"
check each_phony_target_has_a_row targets_without_row
check each_row_has_a_target rows_without_target
check no_target_has_two_rows rows_that_are_twice
check rows_have_group_name_and_text malformed_rows
check help_prints_each_public_target rows_not_printed
check help_prints_no_internal_target internal_rows_printed
exit $failed
