# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Sourced by the tests of this folder, whose functions are named for what they check. Prints TAP.
n=0
failed=0

# check FUNCTION: runs the function under `set -e` in a subshell; prints its output if it fails.
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

# `set -e` ignores the status of a command after `!`, but not that of these two.
# fails COMMAND...: passes if the command fails.
fails() { if "$@"; then return 1; fi; }

# ... | is_empty: passes if the input is empty; prints it.
is_empty() { if grep ''; then return 1; fi; }

# check_all FUNCTION...: prints the plan and checks each function.
check_all() {
	echo "1..$#"
	for promise; do
		check "$promise"
	done
	return $failed
}

# listing FOLDER: every file and folder below it, and the folder itself.
listing() { find "$1" -printf '%y %p %l\n' 2>/dev/null | sort; }

# readme_block LANGUAGE: the first block of this language in README.md.
readme_block() { awk -v begin="^\`\`\`$1\$" '$0 ~ begin { on = 1; next } /^```$/ { if (on) exit } on' README.md; }
