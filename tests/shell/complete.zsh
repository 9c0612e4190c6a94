#!/bin/zsh -f
# SPDX-License-Identifier: LGPL-2.1-only OR MIT
#
# usage: complete.zsh FOLDER LINE
# Prints the words that zsh offers at the end of the line, one per line, with the completion function in FOLDER.
# A second zsh in a pseudo terminal completes the line, since only interactive shells have completion.
zmodload zsh/zpty || exit 77
zpty shell zsh -f -i

# Sends a line and waits until the shell has executed it.
command_line() {
	local line
	zpty -w shell "$1; echo do''ne"
	repeat 500; do
		zpty -r shell line || return 1
		[[ $line != done* ]] || return 0
	done
}

command_line 'PROMPT=; stty -echo; unsetopt zle_bracketed_paste prompt_cr prompt_sp'
command_line "fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -D -u; bindkey '^I' complete-word"
# compadd prints the matching words instead of adding them; calls that only compute matches are unchanged.
zpty -w shell 'compadd() {
	local -a hits
	if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then builtin compadd "$@"; return; fi
	builtin compadd -A hits "$@"
	(( $#hits )) && print -rl -- "offer "${^hits}
	return $(( ! $#hits ))
}'
command_line :
zpty -w shell 'finish() { print; print finished; exit }; comppostfuncs=(finish)'
command_line :
zpty -n -w shell "$2"$'\t'
repeat 2000; do
	zpty -r -t shell line 2>/dev/null || { zpty -t shell || break; sleep 0.01; continue; }
	line=${line//$'\r'/}
	for word in ${(f)line}; do
		[[ $word != *'offer '* ]] || print -r -- ${word##*offer }
		[[ $word != finished* ]] || exit 0
	done
done
