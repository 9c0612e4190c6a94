#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# `make help` lists each public target with one line: packaging/targets.txt has a row for every phony
# target of the makefiles, and no row for a target that does not exist.
set -u
. tests/shell/check.bash
table=packaging/targets.txt
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT

# Targets that are file names are not public; folders are order-only targets of install.
make --no-print-directory -pRrn help 2>/dev/null | sed -n 's/^\.PHONY: //p' | tr ' ' '\n' |
	grep -v / | sort -u >"$tmp/phony"
grep -v '^#' $table | cut -f2 | sort >"$tmp/rows"
make --no-print-directory help >"$tmp/help"

each_phony_target_has_a_row() { comm -23 "$tmp/phony" "$tmp/rows" | is_empty; }

# no-NAME exists in the makefiles for the machine where that library is missing.
each_row_has_a_target() {
	local target
	comm -13 "$tmp/phony" "$tmp/rows" | while read -r target; do
		[ "${target#no-}" != "$target" ] && grep -rq --include='*.mk' "^$target:" lib || echo "$target"
	done | is_empty
}

no_target_has_two_rows() { uniq -d "$tmp/rows" | is_empty; }

rows_have_group_name_and_text() { grep -v '^#' $table | awk -F'\t' 'NF != 3 || $3 == ""' | is_empty; }

help_prints_each_public_target() {
	grep -v '^#\|^internal' $table | cut -f2 | while read -r target; do
		[ "$(grep -c "^  $target  *[^ ]" "$tmp/help")" = 1 ] || { echo "$target is not in make help once"; exit 1; }
	done
}

help_prints_no_internal_target() {
	sed -n 's/^internal\t\([^\t]*\)\t.*/\1/p' $table | while read -r target; do
		fails grep "^  $target " "$tmp/help"
	done
}

check_all each_phony_target_has_a_row each_row_has_a_target no_target_has_two_rows rows_have_group_name_and_text \
	help_prints_each_public_target help_prints_no_internal_target
