#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The training programs: they learn, and training that is saved and continued has the bits of training in one go.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/shell/check.bash
build=$(realpath "$1")
tmp=$(mktemp -d) || exit 1
trap 'rm -rf "$tmp"' EXIT
programs="lenet lstm gpt"
text=/usr/share/common-licenses/GPL-3

available() { [ "$1" != gpt ] || [ -r "$text" ]; }

every_program_learns() {
	local p
	for p in $programs resnet; do
		available "$p" || continue
		timeout 300 "$build/examples/$p" >"$tmp/$p.out" || { tail -3 "$tmp/$p.out"; return 1; }
	done
}

# $1 program, $2 steps, $3 steps before the interruption
resumes() {
	timeout 100 "$build/examples/$1" "$2" "$tmp/$1-one" | grep '^[0-9]' >"$tmp/one.out" || return 1
	timeout 100 "$build/examples/$1" "$3" "$tmp/$1-two" | grep '^[0-9]' >"$tmp/two.out" || return 1
	timeout 100 "$build/examples/$1" "$2" "$tmp/$1-two" | grep '^[0-9]' >>"$tmp/two.out" || return 1
	[ "$(wc -l <"$tmp/one.out")" = "$2" ] && cmp "$tmp/one.out" "$tmp/two.out" &&
		cmp "$tmp/$1-one" "$tmp/$1-two"
}

resumed_training_has_the_same_bits() {
	local p
	for p in $programs; do
		available "$p" || continue
		resumes "$p" 20 7 || { echo "$p"; return 1; }
	done
	resumes resnet 4 2 || { echo resnet; return 1; }
}

a_damaged_checkpoint_is_reported() {
	echo damaged >"$tmp/bad"
	! "$build/examples/lenet" 3 "$tmp/bad" >/dev/null 2>"$tmp/err" && grep -q "not a safetensors file" "$tmp/err"
}

# Ranks share the rows of each batch: the losses are those of one process but for the order of the sums.
ranks_train_as_one_process_does() {
	local p
	for p in lenet gpt; do
		available "$p" || continue
		timeout 100 "$build/examples/$p" 30 "$tmp/$p-alone" | grep '^[0-9]' >"$tmp/alone.out" || return 1
		timeout 100 "$build/bin/tensorrun" -n 4 "$build/examples/$p" 20 "$tmp/$p-ranks" | grep '^[0-9]' >"$tmp/ranks.out" || return 1
		# From the checkpoint that rank 0 wrote, with another number of ranks.
		timeout 100 "$build/bin/tensorrun" -n 2 "$build/examples/$p" 30 "$tmp/$p-ranks" | grep '^[0-9]' >>"$tmp/ranks.out" || return 1
		paste "$tmp/alone.out" "$tmp/ranks.out" | awk '{ d = $2 - $4; if ($1 != $3 || d * d > 1e-8) bad = 1 }
			END { exit bad || NR != 30 }' || { echo "$p"; paste "$tmp/alone.out" "$tmp/ranks.out" | tail -3; return 1; }
	done
}

every_program_is_short() {
	local source
	for source in examples/training/*.c; do
		[ "$(wc -l <"$source")" -le 80 ] || { echo "$source"; return 1; }
	done
}

check_all every_program_learns resumed_training_has_the_same_bits a_damaged_checkpoint_is_reported \
	ranks_train_as_one_process_does every_program_is_short
