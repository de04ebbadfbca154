# SPDX-License-Identifier: MIT OR Apache-2.0
# Prints the completions that zsh offers for each line. $1 is the file of the rules, $2 the script that the inner
# shell reads first, and the other arguments are the lines.
zmodload zsh/zpty || exit 3
local rules=$1 inner=$2 typed line
shift 2
for typed; do
    zpty shell zsh -f -i
    zpty -w shell "source ${(q)inner} ${(q)rules}"
    while zpty -r shell line && [[ $line != ready* ]]; do :; done
    zpty -w -n shell "$typed"$'\t'
    while zpty -r shell line && [[ $line != *the-end* ]]; do
        [[ $line == *offered:* ]] && print -rn -- "${${line#*offered:}%$'\r\n'} "
    done
    print
    zpty -d shell
done
