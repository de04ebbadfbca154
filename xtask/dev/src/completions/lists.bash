
# Bash splits a word at `:` and `=`, and the rules above do not handle lists. This function completes the part after
# the last comma.
_xtask_lists() {
    local line=${COMP_LINE:0:COMP_POINT} whole value option head= part before
    whole=${line##*[[:space:]]}
    before=${line%"$whole"}
    before=${before%"${before##*[![:space:]]}"}
    option=${before##*[[:space:]]}
    value=$whole
    if [[ $whole == --*=* ]]; then
        option=${whole%%=*}
        head=$option=
        value=${whole#*=}
    fi
    part=${value##*,}
    head+=${value%"$part"}
    if [[ $whole != *"$2" ]]; then
        _xtask "$@"
        return
    fi
    _xtask "$1" "$part" "$option"
    # The shell replaces only the part of the word after the last `:` or `=`.
    local kept=$(( ${#whole} - ${#2} )) place
    for place in "${!COMPREPLY[@]}"; do
        COMPREPLY[place]=$head${COMPREPLY[place]}
        COMPREPLY[place]=${COMPREPLY[place]:kept}
    done
}
complete -F _xtask_lists -o bashdefault -o default xtask
