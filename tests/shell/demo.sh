#!/bin/sh
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# The example of digits reaches 96 % on held-out images and lists its buffers during training. Runs in the guest
# as well.
set -u
bin=${1:-/t}/bin
tmp=$(mktemp)
trap 'rm -f "$tmp"' EXIT
echo "1..2"
"${DIGITS:-examples/digits}/run" "$bin" >"$tmp" 2>&1
status=$?
sed 's/^/# /' "$tmp"
result=0
if [ $status -eq 0 ]; then
	echo "ok 1 - digits_reach_96_per_cent"
else
	echo "not ok 1 - digits_reach_96_per_cent"
	result=1
fi
if grep -q '  w1  .*f32  .*\[64,128\]  .*32KiB' "$tmp"; then
	echo "ok 2 - tensorstat_shows_the_weights_halfway"
else
	echo "not ok 2 - tensorstat_shows_the_weights_halfway"
	result=1
fi
exit $result
