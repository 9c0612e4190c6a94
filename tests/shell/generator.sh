#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The generator refuses a bad entry with its file and line, an operator whose function or kernel does not
# exist, and an operator without a derivative. tests/unit/gradients finds a derivative that no test compares with
# finite differences.
set -u
. tests/shell/check.bash
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
cp -r lib/schema/ops lib/schema/derivatives "$tmp"

generate() { python3 lib/schema/gen/gen.py "$tmp/ops" "$tmp/derivatives" "$tmp/out" 2>&1; }

# refused FOLDER TEXT MESSAGE: with TEXT as a separate file the generator fails with MESSAGE, the file and a line.
refused() {
	local file="$tmp/$1/pointwise/zz_test.yaml" out rc
	printf '# test\n%s\n' "$2" >"$file"
	out=$(generate) && rc=0 || rc=$?
	rm "$file"
	[ $rc -ne 0 ] && [[ $out =~ zz_test.yaml:[0-9]+: && $out == *"$3"* ]] || { echo "$out"; return 1; }
}

good='doc: d, shapes: s, tags: [pointwise]'

entries_of_the_tree_are_accepted() { generate; }

unknown_field_is_refused() {
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, colour: red, $good}" 'unknown field colour'
}

schema_that_cannot_be_read_is_refused() { refused ops "- {func: 'zz_test Tensor', op: unary, $good}" 'cannot read'; }

yaml_that_cannot_be_read_is_refused() { refused ops "- {func: 'zz_test(Tensor self) -> Tensor'" ''; }

value_that_does_not_exist_is_refused() {
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, dtype: flot, $good}" 'flot is none of'
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: '../zz', kernel: exp, $good}" 'no name of a function'
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, variants: [function, out], $good}" 'variants must be text'
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, for: -1, $good}" 'for must be a list'
}

file_without_entries_is_refused() { refused ops '# nothing' 'a list of entries is needed'; }

# The generator writes the sources of the families that there are.
family_that_was_deleted_leaves_no_source() {
	generate
	touch "$tmp/out/ops_api_zz.c" "$tmp/out/family/zz.h"
	generate
	[ ! -e "$tmp/out/ops_api_zz.c" ] && [ ! -e "$tmp/out/family/zz.h" ]
}

operator_without_a_function_is_refused() {
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: zz_missing, kernel: exp, $good}" \
		'no file of lib/ defines op_zz_missing()'
}

operator_without_a_kernel_is_refused() {
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, $good}" 'no CPU_KERNELS(K(zz_test))'
}

operator_without_a_derivative_is_refused() {
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, kernel: exp, $good}" 'zz_test has no derivative'
}

derivative_of_an_unknown_operator_is_refused() {
	refused derivatives '- {name: zz_test, self: grad}' 'there is no such operator'
}

formula_for_an_unknown_argument_is_refused() {
	sed -i '/^- name: exp$/,/^$/s/^  self:/  zz:/' "$tmp"/derivatives/pointwise/pointwise.yaml
	generate | grep 'pointwise.yaml:[0-9]*: exp has no argument zz'
}

# gradients CHECKED UNCHECKED: what tests/unit/gradients says about these lines, for all formulas of the tree.
gradients() {
	[ -e "$tmp/out/formulas.txt" ] || generate
	printf '%b' "$1" >"$tmp/checked"
	printf '%b' "$2" >"$tmp/unchecked"
	tests/unit/gradients "$tmp/out/formulas.txt" "$tmp/checked" "$tmp/unchecked" 2>&1
}

formula_that_no_test_checks_is_found() {
	local out
	out=$(gradients 'ExpBackward 0\nMulBackward 0\n' '') && return 1
	[[ $out == *"pointwise.yaml:"*"mul.Tensor: no test compares the formula for other "* && $out != *" exp: "* ]] &&
		[[ $out != *"mul.Tensor: no test compares the formula for self "* && $out != *not_again* ]]
}

list_of_unchecked_formulas_needs_reasons_and_holds_no_others() {
	gradients '' 'exp self\n' | grep 'unchecked:1: .* reason' &&
		gradients 'ExpBackward 0\n' '# title\n\n# A reason.\nexp self\n' | grep 'unchecked:4: exp: .* is checked; remove' &&
		gradients '' '# title\n\n# A reason.\nexp zz\n' | grep 'unchecked:4: exp: there is no formula for zz'
}

check_all entries_of_the_tree_are_accepted unknown_field_is_refused schema_that_cannot_be_read_is_refused \
	yaml_that_cannot_be_read_is_refused value_that_does_not_exist_is_refused file_without_entries_is_refused \
	family_that_was_deleted_leaves_no_source operator_without_a_function_is_refused operator_without_a_kernel_is_refused \
	operator_without_a_derivative_is_refused derivative_of_an_unknown_operator_is_refused \
	formula_for_an_unknown_argument_is_refused formula_that_no_test_checks_is_found \
	list_of_unchecked_formulas_needs_reasons_and_holds_no_others
