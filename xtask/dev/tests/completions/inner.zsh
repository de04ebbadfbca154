# SPDX-License-Identifier: MIT OR Apache-2.0
# Makes the interactive zsh that reads it print the words that completion offers.
PROMPT=
autoload -Uz compinit
compinit -u -D
bindkey '^I' complete-word
source $1
compdef _xtask xtask
compadd() {
    if [[ ${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]]; then
        builtin compadd "$@"
        return
    fi
    local -a offered
    builtin compadd -O offered "$@"
    print -rl -- offered:$^offered
    builtin compadd "$@"
}
finish() { print the-end }
comppostfuncs=(finish)
print ready
