#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# What bash offers behind `tensorstat`: the objects, their words, and only those that fit.
. tools/tensorstat/completions/tensorstat.bash
failed=0
want=""
n=0

# offers WORDS...: the line so far, its last word being typed; what must come is in $want.
offers() {
	local name=$1
	shift
	COMP_WORDS=(tensorstat "$@")
	COMP_CWORD=$#
	_tensorstat
	n=$((n + 1))
	if [ "${COMPREPLY[*]}" = "$want" ]; then
		echo "ok $n - $name"
	else
		echo "not ok $n - $name"
		echo "# \"${COMPREPLY[*]}\" is not \"$want\""
		failed=1
	fi
}

echo "1..8"
want="monitor metrics" offers objects_by_their_first_letters m
want="buffer" offers object_behind_options -j --sort size b
want="show" offers command_of_an_object buffer s
want="dtype" offers filter_of_buffers buffer show d
want="f16 f32 f64 f8_e4m3fn f8_e5m2" offers value_of_a_filter buffer show dtype f
want="limit" offers kind_of_event monitor free l
want="--sort" offers long_option --so
want="device" offers value_of_an_option -b d
exit $failed
