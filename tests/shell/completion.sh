#!/bin/bash
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# What bash, zsh and fish offer behind `tensorstat`: every object, word and option that `tensorstat help`
# names and no other, and only those that fit; tensorstat(1) names them, too. A shell that is not installed is
# skipped.
set -u
. tests/shell/check.bash
tensorstat=$(readlink -f "${1:-build}")/bin/tensorstat
folder=tools/tensorstat/completions
. $folder/tensorstat.bash

# ---- what a shell offers at the end of a line, sorted ----

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

# ---- what the help names ----

# "buffer show [ID] [dtype DTYPE]": the usage without its explanations.
usage_of() { "$tensorstat" help | sed -n "s/^  \($1 .*\)/\1/p" | sed 's/   *[^ ].*//'; }

objects_of_the_help() { "$tensorstat" help | sed -n '/^Options/q; s/^  \([a-z].*\)/\1/p' | sed 's/help | version/help\nversion/' | cut -d' ' -f1 | sort -u; }
options_of_the_help() { "$tensorstat" help | grep -oE -- '--[a-z-]+' | sort -u; }
# The words of an object after `show`, where it has that command.
words_of_the_help() {
	if [ "$1" = monitor ]; then
		"$tensorstat" help | sed -n '/^  monitor/,/^  metrics/{/^  metrics/!p}' | sed 's/.*events: //' | grep -oE '[a-z]+'
	else
		usage_of "$1" | cut -d' ' -f2- | grep -oE '(^|[[ ])[a-z]+' | tr -d '[ ' | grep -vx -e show -e set
	fi | sort -u
}

# ---- checks of one shell ----

# offers SHELL LINE WORDS: exactly these.
offers() {
	local got
	got=$("offered_by_$1" "$2") || return $?
	[ "$(echo $got)" = "$3" ] || { echo "$1: \"$2\" offers \"$(echo $got)\", not \"$3\""; return 1; }
}

what_the_help_names() {
	local object words
	offers "$1" "tensorstat " "$(echo $(objects_of_the_help))"
	offers "$1" "tensorstat --" "$(echo $(options_of_the_help))"
	for object in buffer client export user device; do
		offers "$1" "tensorstat $object " "$([ $object = device ] && echo help set show || echo help show)"
	done
	for object in buffer client export top monitor plot; do
		words=$(words_of_the_help $object)
		[ -n "$words" ]
		case $object in buffer | client | export) set -- "$1" "$object show " ;; *) set -- "$1" "$object " ;; esac
		offers "$1" "tensorstat $2" "$(echo $words)"
	done
}

what_fits() {
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

bash_offers_what_the_help_names() { what_the_help_names bash; }
bash_offers_what_fits() { what_fits bash; }
zsh_offers_what_the_help_names() { what_the_help_names zsh; }
zsh_offers_what_fits() { what_fits zsh; }
fish_offers_what_the_help_names() { what_the_help_names fish; }
fish_offers_what_fits() { what_fits fish; }

bash_offers_files() { cd docs && offers bash "tensorstat plot from arch" "architecture.md"; }

# Without font macros and escapes.
man_page_names_what_the_help_names() {
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

check_all bash_offers_what_the_help_names bash_offers_what_fits bash_offers_files zsh_offers_what_the_help_names \
	zsh_offers_what_fits fish_offers_what_the_help_names fish_offers_what_fits man_page_names_what_the_help_names \
	man_page_names_every_check_of_doctor
