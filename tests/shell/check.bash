# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Sourced by tests of this folder: numbered results of functions that are named for what they check.
n=0
failed=0

# check FUNCTION: the function runs under `set -e` in a subshell; its output is shown if it fails.
check() {
	local out rc
	n=$((n + 1))
	out=$(set -e; "$1" 2>&1)
	rc=$?
	case $rc in
	0) echo "ok $n - $1" ;;
	77) echo "ok $n - $1 # SKIP $out" ;;
	*)
		echo "not ok $n - $1"
		printf '%s\n' "$out" | sed 's/^/# /'
		failed=1
		;;
	esac
}

# `set -e` ignores a command behind `!`: these two do not.
# fails COMMAND...: passes if the command fails.
fails() { if "$@"; then return 1; fi; }

# ... | is_empty: passes if the input is empty; prints it.
is_empty() { if grep ''; then return 1; fi; }

# check_all FUNCTION...: the plan and all of them.
check_all() {
	echo "1..$#"
	for promise; do
		check "$promise"
	done
	return $failed
}

# Every file and folder below $1, with the folder itself.
listing() { find "$1" -printf '%y %p %l\n' 2>/dev/null | sort; }

# The first block of language $1 in README.md.
readme_block() { awk -v begin="^\`\`\`$1\$" '$0 ~ begin { on = 1; next } /^```$/ { if (on) exit } on' README.md; }
