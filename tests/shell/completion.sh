#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# Completion of `tensorstat` in bash, zsh and fish offers exactly the objects, words and options of `tensorstat
# help` that are valid at the position; tensorstat(1) documents them as well. Missing shells are skipped.
set -u
. tests/shell/check.bash
tensorstat=$(readlink -f "${1:-build}")/bin/tensorstat
folder=tools/tensorstat/completions
. $folder/tensorstat.bash

# ---- words offered at the end of a line, sorted ----

offered_by_bash() {
	local words
	read -ra words <<<"$1"
	[[ $1 != *' ' ]] || words+=("")
	COMP_WORDS=("${words[@]}")
	COMP_CWORD=$((${#words[@]} - 1))
	_tensorstat
	printf '%s\n' "${COMPREPLY[@]}" | sort
}

offered_by_zsh() {
	command -v zsh >/dev/null || { echo "zsh is not installed" >&2; return 77; }
	timeout 60 zsh -f tests/shell/complete.zsh $folder "$1" | sort
}

offered_by_fish() {
	command -v fish >/dev/null || { echo "fish is not installed" >&2; return 77; }
	fish --no-config -c "source $folder/tensorstat.fish; complete -C'$1'" | cut -f1 | sed 's/=$//' | sort -u
}

# ---- words of `tensorstat help` ----

# The usage line without its description, such as "buffer show [ID] [dtype DTYPE]".
usage_of() { "$tensorstat" help | sed -n "s/^  \($1 .*\)/\1/p" | sed 's/   *[^ ].*//'; }

objects_of_the_help() { "$tensorstat" help | sed -n '/^Options/q; s/^  \([a-z].*\)/\1/p' | sed 's/help | version/help\nversion/' | cut -d' ' -f1 | sort -u; }
options_of_the_help() { "$tensorstat" help | grep -oE -- '--[a-z-]+' | sort -u; }
# The words of an object after `show`, if it has that command.
words_of_the_help() {
	if [ "$1" = monitor ]; then
		"$tensorstat" help | sed -n '/^  monitor/,/^  metrics/{/^  metrics/!p}' | sed 's/.*events: //' | grep -oE '[a-z]+'
	else
		usage_of "$1" | cut -d' ' -f2- | grep -oE '(^|[[ ])[a-z]+' | tr -d '[ ' | grep -vx -e show -e set
	fi | sort -u
}

# ---- checks of one shell ----

# offers SHELL LINE WORDS: passes if the shell offers exactly these words.
offers() {
	local got
	got=$("offered_by_$1" "$2") || return $?
	[ "$(echo $got)" = "$3" ] || { echo "$1: \"$2\" offers \"$(echo $got)\", not \"$3\""; return 1; }
}

all_words_of_the_help() {
	local object words
	offers "$1" "tensorstat " "$(echo $(objects_of_the_help))"
	offers "$1" "tensorstat --" "$(echo $(options_of_the_help))"
	for object in buffer client export user group device; do
		offers "$1" "tensorstat $object " "$([ $object = device ] && echo help set show || echo help show)"
	done
	for object in buffer client export top monitor plot; do
		words=$(words_of_the_help $object)
		[ -n "$words" ]
		case $object in buffer | client | export) set -- "$1" "$object show " ;; *) set -- "$1" "$object " ;; esac
		offers "$1" "tensorstat $2" "$(echo $words)"
	done
}

valid_words_only() {
	offers "$1" "tensorstat m" "metrics monitor"
	offers "$1" "tensorstat -j --sort size b" "buffer"
	offers "$1" "tensorstat buffer s" "show"
	offers "$1" "tensorstat buffer show d" "dtype"
	offers "$1" "tensorstat b s dtype f" "f16 f32 f64 f8_e4m3fn f8_e5m2"
	offers "$1" "tensorstat monitor free l" "limit"
	offers "$1" "tensorstat --so" "--sort"
	offers "$1" "tensorstat -b d" "device"
	offers "$1" "tensorstat pl t" "title to"
}

bash_offers_all_words_of_the_help() { all_words_of_the_help bash; }
bash_offers_valid_words_only() { valid_words_only bash; }
zsh_offers_all_words_of_the_help() { all_words_of_the_help zsh; }
zsh_offers_valid_words_only() { valid_words_only zsh; }
fish_offers_all_words_of_the_help() { all_words_of_the_help fish; }
fish_offers_valid_words_only() { valid_words_only fish; }

bash_offers_files() { cd docs && offers bash "tensorstat plot from arch" "architecture.md"; }

# Removes font macros and escapes from the page.
man_page_has_all_words_of_the_help() {
	local text word
	text=$(sed 's/\\f[BIR]//g; s/\\-/-/g; s/^\.[A-Z]* //; s/"//g' man/tensorstat.1)
	for word in $(objects_of_the_help) $(options_of_the_help) $(for o in buffer client export top monitor plot; do words_of_the_help $o; done); do
		grep -qE -- "(^|[ [{])$word(\$|[] ,=])" <<<"$text" || { echo "$word is not in tensorstat(1)"; exit 1; }
	done
}

man_page_names_every_check_of_doctor() {
	local checks
	checks=$(grep -ho 'finding_add(findings, "[^"]*"' tools/tensorstat/doctor/*.c | cut -d'"' -f2 | sort -u)
	[ -n "$checks" ]
	for check in $checks; do
		sed -n '/^\.SH DOCTOR/,/^\.SH COLUMNS/p' man/tensorstat.1 | sed 's/\\-/-/g' | grep -qE "^\.BR? .*\b$check\b" ||
			{ echo "$check is not in tensorstat(1)"; exit 1; }
	done
}

check_all bash_offers_all_words_of_the_help bash_offers_valid_words_only bash_offers_files \
	zsh_offers_all_words_of_the_help zsh_offers_valid_words_only \
	fish_offers_all_words_of_the_help fish_offers_valid_words_only \
	man_page_has_all_words_of_the_help man_page_names_every_check_of_doctor
