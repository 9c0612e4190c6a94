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
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, dtype: flot, $good}" "'flot' is none of"
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: '../zz', kernel: exp, $good}" 'op: cannot be'
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, variants: [function, out], $good}" 'variants: must be text'
	refused ops "- {func: 'zz_test(Tensor self) -> Tensor', op: unary, for: -1, $good}" 'for: must be a list'
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

# refused_at LINE FOLDER TEXT MESSAGE: as refused; the message has this line of the file, where TEXT begins at line 2.
refused_at() {
	local out
	printf '# test\n%s\n' "$3" >"$tmp/$2/pointwise/zz_test.yaml"
	out=$(generate) || true
	rm "$tmp/$2/pointwise/zz_test.yaml"
	[[ $out == *"zz_test.yaml:$1: $4"* ]] || { echo "$out"; return 1; }
}

fn="func: 'zz_test(Tensor self) -> Tensor'"
first="- $fn"$'\n  '

field_that_is_there_twice_is_refused() {
	refused_at 4 ops $'- op: unary\n  kernel: exp\n  op: binary' 'the field op is there twice'
	refused_at 3 derivatives $'- name: exp\n  name: log\n  self: grad' 'the field name is there twice'
	refused_at 3 ops $'- op: unary\n  dispatch: {CPU: a, CPU: b}' 'the field CPU is there twice'
}

yaml_that_no_entry_needs_is_refused() {
	refused_at 3 ops $'- op: unary\n  doc: !!python/object/apply:os.getcwd []' 'an entry has no tags'
	refused_at 3 derivatives $'- name: exp\n  self: !a grad' 'an entry has no tags, got !a'
	refused_at 3 derivatives $'- name: exp\n  self: &a grad' '&a: only an entry has a name'
	refused_at 3 ops $'- &a\n  <<: *a' '*a: only'
	refused_at 2 derivatives '- {name: exp, self: *a}' '*a: only'
	refused_at 2 ops '- {? [a]: b}' 'the name of a field must be a word'
	refused_at 2 ops '- {op: [[[[]]]]}' 'an entry has no lists of lists'
}

derivative_with_a_value_of_the_wrong_kind_is_refused() {
	refused_at 3 derivatives $'- name: exp\n  self: [grad]' 'self: must be text'
	refused_at 3 derivatives $'- name: exp\n  self: 5' 'self: must be text, got 5'
	refused_at 3 derivatives $'- name: exp\n  self:' 'self: must be text, got None'
	refused_at 3 derivatives $'- name: exp\n  self: {a: b}' 'self: must be text'
	refused_at 3 derivatives $'- name: exp\n  outputs: 2026-01-01' 'outputs: must be a list of words'
	refused_at 2 derivatives '- {name: [exp], self: grad}' 'name: must be text'
	refused_at 2 derivatives '- nondifferentiable: 5' 'nondifferentiable: must be a list of words'
	refused_at 2 derivatives '- nondifferentiable: [[exp]]' 'an entry has no lists of lists'
	refused_at 2 derivatives '- nondifferentiable: [5]' 'nondifferentiable: must be text, got 5'
	refused_at 2 derivatives '- {name: exp, nondifferentiable: [exp]}' 'an entry needs the field name or nondifferentiable'
	refused_at 3 derivatives $'- name: exp\n  self: mul(grad' 'self: has a ( without its other half'
}

operator_with_a_value_of_the_wrong_kind_is_refused() {
	refused_at 3 ops "${first}dispatch: ~" 'dispatch: must be a list of names with a value each'
	refused_at 3 ops "${first}dispatch: {ZZ: a}" "dispatch: cannot be 'ZZ'"
	refused_at 3 ops "${first}reads: {self: once}" "reads: cannot be 'once'"
	refused_at 3 ops "${first}also: exp" 'also: must be a list of words'
	refused_at 3 ops "${first}tags: [zz]" "tags: 'zz' is none of"
	refused_at 3 ops "${first}doc: 5" 'doc: must be text, got 5'
	refused_at 3 ops "${first}shapes: \"a\\x00\"" 'shapes: contains the control character U+0000'
	refused_at 3 ops "${first}errors: a */ b" 'errors: contains the mark of a comment'
	refused_at 2 ops "- {func: 'zz_test() -> Tensor', each: 'clone', $good}" 'zz_test: each needs a list'
	refused_at 2 ops '- {func: "a\nb", op: unary}' "cannot read 'a\nb'"
	refused_at 2 ops "- {func: 'zz_test(Tensor int) -> Tensor', op: unary, $good}" 'int is a word of C'
	refused_at 2 ops "- {func: 'zz_test(Tensor a, Tensor a) -> Tensor', op: unary, $good}" 'the name a is there twice'
	refused_at 2 ops "- {func: 'zz_test(Tensor a, int b=[0) -> Tensor', op: unary, $good}" 'has a'
	refused_at 2 ops "- {func: 'zz_test(Tensor a) -> Foo', op: unary, $good}" 'cannot read result'
	refused_at 2 ops "- {$fn, op: unary, kernel: exp, also: [zz_missing], $good}" 'zz_test: no CPU_KERNELS(K(zz_missing))'
}

# changed_derivative SED MESSAGE: with this change of the derivative of exp the generator fails with MESSAGE at its line.
changed_derivative() {
	local file="$tmp/derivatives/pointwise/pointwise.yaml" out
	cp "$file" "$tmp/saved"
	sed -i "/^- name: exp\$/,/^\$/{$1}" "$file"
	out=$(generate) || true
	mv "$tmp/saved" "$file"
	[[ $out =~ pointwise.yaml:[0-9]+:\ exp && $out == *"$2"* ]] || { echo "$out"; return 1; }
}

formula_for_an_unknown_argument_is_refused() { changed_derivative 's/self:/zz:/' 'exp has no argument zz'; }

formula_over_unknown_names_is_refused() {
	changed_derivative 's/self: .*/self: tensor_zz(grad)/' 'there is no function tensor_zz()'
	changed_derivative 's/self: .*/self: tensor_reshape(grad, sizes(zz))/' 'sizes(zz) needs a tensor'
	changed_derivative '/self: /d' 'has no formula'
	changed_derivative 's/self: /outputs: [zz]\n  &/' 'has no result zz'
}

family_in_two_groups_is_refused() {
	cp "$tmp/ops/pointwise/unary.yaml" "$tmp/ops/shape/"
	generate | grep 'ops/shape/unary.yaml:1: the family unary is in .*ops/pointwise/unary.yaml' || return 1
	rm "$tmp/ops/shape/unary.yaml"
	cp "$tmp/derivatives/pointwise/unary.yaml" "$tmp/derivatives/shape/"
	generate | grep 'derivatives/shape/unary.yaml:1: the family unary is in' || return 1
	rm "$tmp/derivatives/shape/unary.yaml"
}

# compiles TEXT: whether a kernel file with this text compiles.
compiles() {
	[ -e "$tmp/out/stamp" ] || generate
	printf '#include "kernels/cpu/simd/cpu.h"\n%s\n' "$1" >"$tmp/kernel.c"
	gcc -std=gnu11 -fsyntax-only -D_GNU_SOURCE -DCPU_LEVEL=v2 -Iinclude -Iinclude/uapi -I"$tmp/out/include" -Ilib -I"$tmp/out" \
		"$tmp/kernel.c"
}

kernel_of_another_type_does_not_compile() {
	local pointwise='(struct tensor_iter *it, const struct pointwise_params *params) { return 0; }'
	local dot='(tensor *out, const tensor *a, const tensor *b, bool conjugate) { return 0; }'
	compiles "static int cpu_add$pointwise static int cpu_dot$dot CPU_KERNELS(K(add), KERNEL(dot))" || return 1
	compiles "static int cpu_add$dot CPU_KERNELS(K(add))" && return 1
	compiles "static int cpu_dot$pointwise CPU_KERNELS(KERNEL(dot))" && return 1
	compiles "static int cpu_dot$pointwise CPU_KERNELS(KERNEL(zz))" && return 1
	sed -i 's/tags: .pointwise./tags: [reduction]/' "$tmp/ops/pointwise/compare.yaml"
	generate | grep 'compare.yaml:[0-9]*: eq.Tensor: K(eq) is for pointwise operators' || return 1
	cp lib/schema/ops/pointwise/compare.yaml "$tmp/ops/pointwise/"
}

# example TEXT MESSAGE: with TEXT among the examples, from line 2, the generator fails with MESSAGE.
example() {
	local out
	mkdir -p "$tmp/examples/pointwise"
	printf '# test\n%b\n' "$1" >"$tmp/examples/pointwise/zz.txt"
	out=$(python3 lib/schema/gen/gen.py "$tmp/ops" "$tmp/derivatives" "$tmp/out" "$tmp/examples" 2>&1) && return 1
	[[ $out == *"zz.txt:$2"* ]] || { echo "$out"; return 1; }
}

example_that_cannot_be_read_is_refused() {
	example 'exp: vector(1)\n    tensor([2.7183])' '3: a result follows its operator and is indented by one tab'
	example 'zz: vector(1)\n\ttensor([2.7183])' '2: there is no operator zz'
	example 'exp: vector(1)\nexp: vector(2)' '3: exp has an example at'
	example 'exp' '2: an example is'
	example 'exp: vector(1\x00)' '2: contains the control character U+0000'
}

# arguments: for each line of the input, the message about an operator with this second argument, or `accepted`. One process
# reads them all: a call of the generator for each would take a minute.
arguments() {
	PYTHONPATH=lib/schema/gen python3 -c '
import sys, schema
for line in sys.stdin:
    try:
        schema.check_names([a.name for a in schema.parse_func(f"zz_test(Tensor self, {line.strip()}) -> Tensor")[3]])
        print("accepted", line.strip())
    except schema.SchemaError as e:
        print(e)'
}

# The text of a default is copied into the C source.
default_of_another_kind_is_refused() {
	refused_at 2 ops "- {func: 'zz_test(Tensor self, int n=010) -> Tensor', op: unary, $good}" \
		"int cannot have the default '010'" || return 1
	printf '%s\n' 'int n=-007' 'int n=1.5' 'int n=True' 'int n=None' 'int n=[1,2]' 'int? n=False' 'int[] n=[01]' \
		'int[] n=None' 'float x=01.5' 'float x="a"' 'bool b=1' 'bool? b=0' 'str s=None' 'str s=5' 'Scalar s=True' \
		'Scalar[] s=1' 'float[] x=[1.5]' 'Tensor t=None' 'ScalarType d=5' 'Layout? l=0' |
		arguments | grep -v 'cannot have the default' | is_empty || return 1
	printf '%s\n' 'int n=99999999999999999999' 'int n=-9223372036854775808' 'int[] n=[0, 9223372036854775808]' \
		'float x=1e999' 'Scalar x=-1e400' | arguments | grep -v 'is too large' | is_empty
}

default_of_its_type_is_accepted() {
	printf '%s\n' 'int n=9223372036854775807' 'int n=-1' 'int? n=None' 'int[2] n=0' 'int[] n=[-2, -1]' 'int[]? n=[]' \
		'float x=1.' 'float x=1e-05' 'float? x=None' 'Scalar s=0.5' 'bool b=True' 'bool? b=None' 'str s="a"' \
		'ScalarType? d=long' | arguments | grep -v accepted | is_empty
}

name_of_a_keyword_or_macro_is_refused() {
	refused_at 2 ops "- {func: 'zz_test(Tensor self, int class) -> Tensor', op: unary, $good}" 'class is a word of C or C++' ||
		return 1
	printf 'int %s\n' this new template operator and bool typeof alignas co_await errno linux stdin |
		arguments | grep -v 'is a word of C or C++' | is_empty || return 1
	printf 'int %s\n' NULL EINVAL E2BIG TENSOR_NONE INT64_MAX INT64_C __x _X I | arguments | grep -v 'name of a macro' | is_empty
}

# message COMMAND...: the command fails with one line, which is no traceback.
message() {
	local out
	out=$("$@" 2>&1) && return 1
	echo "$out"
	[ "$(wc -l <<<"$out")" = 1 ]
}

file_that_cannot_be_read_is_no_traceback() {
	local file=$tmp/ops/pointwise/zz_test.yaml
	mkdir "$file"
	message generate | grep 'zz_test.yaml:1: Is a directory' || return 1
	rmdir "$file"
	ln -s nothing "$file"
	message generate | grep 'zz_test.yaml:1: No such file' || return 1
	rm "$file"
}

output_folder_that_cannot_be_made_is_no_traceback() {
	message python3 lib/schema/gen/gen.py "$tmp/ops" "$tmp/derivatives" /dev/null/out | grep '^gen.py: /dev/null/out' || return 1
	fails python3 lib/schema/gen/gen.py "$tmp/ops" 2>&1 | grep '^usage: gen.py'
}

mutations_get_an_answer_with_a_place() { tests/fuzz/generator 14 80; }

check_all entries_of_the_tree_are_accepted unknown_field_is_refused schema_that_cannot_be_read_is_refused \
	yaml_that_cannot_be_read_is_refused value_that_does_not_exist_is_refused file_without_entries_is_refused \
	family_that_was_deleted_leaves_no_source operator_without_a_function_is_refused operator_without_a_kernel_is_refused \
	operator_without_a_derivative_is_refused derivative_of_an_unknown_operator_is_refused \
	formula_for_an_unknown_argument_is_refused formula_that_no_test_checks_is_found \
	list_of_unchecked_formulas_needs_reasons_and_holds_no_others field_that_is_there_twice_is_refused \
	yaml_that_no_entry_needs_is_refused derivative_with_a_value_of_the_wrong_kind_is_refused \
	operator_with_a_value_of_the_wrong_kind_is_refused formula_over_unknown_names_is_refused \
	kernel_of_another_type_does_not_compile family_in_two_groups_is_refused example_that_cannot_be_read_is_refused \
	default_of_another_kind_is_refused default_of_its_type_is_accepted name_of_a_keyword_or_macro_is_refused \
	file_that_cannot_be_read_is_no_traceback output_folder_that_cannot_be_made_is_no_traceback \
	mutations_get_an_answer_with_a_place
