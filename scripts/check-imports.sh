#!/usr/bin/env bash
# Checks which crate imports which, over the normal dependencies that `cargo tree` lists.
#
#   scripts/check-imports.sh              check the workspace
#   scripts/check-imports.sh --self-test  show that violations are found, on written-down trees
#
# Needs cargo and bash, nothing else. Exit code 0: all rules hold; 1: one does not, and its path is
# printed.
set -euo pipefail
cd "$(dirname "$0")/.."

# crate | direct dependencies it may have (* for any) | crates it must not contain at any depth
RULES='
dynamiccl-spec     | serde                                | dynamiccl-*
dynamiccl-gpu      | libloading thiserror                 | dynamiccl dynamiccl-*
dynamiccl-env      | *                                    | dynamiccl dynamiccl-agent dynamiccl-gpu dynamiccl-live dynamiccl-policies dynamiccl-plugin burn burn-* clap clap_*
dynamiccl-synth    | dynamiccl-env dynamiccl-spec rand rand_chacha roxmltree serde serde_json thiserror toml | dynamiccl dynamiccl-agent dynamiccl-policies dynamiccl-plugin burn burn-* clap clap_*
dynamiccl-policies | dynamiccl-spec safetensors thiserror | dynamiccl dynamiccl-env dynamiccl-agent dynamiccl-plugin burn burn-* cudarc cuda* clap clap_*
dynamiccl-plugin   | dynamiccl-spec dynamiccl-policies serde thiserror toml | dynamiccl dynamiccl-env dynamiccl-agent burn burn-* clap clap_*
dynamiccl-host     | dynamiccl-spec libloading serde thiserror | dynamiccl dynamiccl-env dynamiccl-agent dynamiccl-policies dynamiccl-plugin burn burn-* clap clap_*
dynamiccl-live     | dynamiccl-env dynamiccl-gpu dynamiccl-host dynamiccl-spec hmac serde serde_json sha2 tempfile thiserror | dynamiccl dynamiccl-agent dynamiccl-policies dynamiccl-plugin burn burn-* clap clap_*
dynamiccl-agent    | *                                    | dynamiccl dynamiccl-gpu dynamiccl-host dynamiccl-live dynamiccl-plugin clap clap_* indicatif console crossterm ratatui
dynamiccl          | *                                    | dynamiccl-plugin
'

# The rule of one crate as "direct|forbidden", or nothing where there is none.
rule_of() {
    local crate direct forbidden
    while IFS='|' read -r crate direct forbidden; do
        if [[ "${crate// /}" == "$1" ]]; then
            echo "$direct|$forbidden"
            return
        fi
    done <<<"$RULES"
}

# Whether the word $1 matches one of the patterns after it.
matches() {
    local word=$1 pattern
    shift
    for pattern in "$@"; do
        # Unquoted: it is a pattern.
        # shellcheck disable=SC2053
        if [[ "$word" == $pattern ]]; then return 0; fi
    done
    return 1
}

# Checks the tree of one crate, given on stdin as lines of "depth|name version …".
check_tree() {
    local crate=$1 rule depth name rest path violations=0
    local -a direct forbidden above=()
    rule=$(rule_of "$crate")
    if [[ -z "$rule" ]]; then
        echo "$crate: no rule; add one to RULES in scripts/check-imports.sh"
        return 1
    fi
    # No file name may slip into the patterns.
    set -f
    # shellcheck disable=SC2206
    direct=(${rule%%|*}) forbidden=(${rule#*|})
    set +f
    while IFS='| ' read -r depth name rest; do
        above=("${above[@]:0:depth}" "$name")
        path=$(printf ' -> %s' "${above[@]}")
        path=${path# -> }
        if ((depth == 0)); then continue; fi
        if matches "$name" "${forbidden[@]}"; then
            echo "$crate: $path"
            echo "    rule: $crate must not import $name, directly or through others"
            violations=$((violations + 1))
        elif ((depth == 1)) && ! matches "$name" "${direct[@]}"; then
            echo "$crate: $path"
            echo "    rule: $crate may import only: ${direct[*]}"
            violations=$((violations + 1))
        fi
    done
    ((violations == 0))
}

check_workspace() {
    local members member failed=0
    members=$(cargo tree --locked --workspace --depth 0 --prefix none --format '{p}' | cut -d' ' -f1 | sort -u)
    for member in $members; do
        cargo tree --locked --package "$member" --edges normal --all-features \
            --prefix depth --format '|{p}' >"$scratch/tree"
        check_tree "$member" <"$scratch/tree" || failed=1
    done
    if ((failed)); then return 1; fi
    echo "imports: $(wc -w <<<"$members") crates follow the rules"
}

# Fails unless the tree on stdin makes check_tree say $2 (nothing: accept it) about crate $1.
expect() {
    local said
    said=$(check_tree "$1") || true
    if [[ "$said" != "$2" ]]; then
        printf 'self-test: for %s expected:\n%s\ngot:\n%s\n' "$1" "$2" "$said"
        exit 1
    fi
}

self_test() {
    expect dynamiccl-spec "" <<'TREE'
0|dynamiccl-spec v0.1.0 (/home/me/dynamiccl/env/spec)
1|serde v1.0.0
2|serde_derive v1.0.0 (proc-macro)
TREE
    expect dynamiccl-spec "dynamiccl-spec: dynamiccl-spec -> rand
    rule: dynamiccl-spec may import only: serde" <<'TREE'
0|dynamiccl-spec v0.1.0 (/home/me/dynamiccl/env/spec)
1|rand v0.10.0
2|rand_core v0.10.0
1|serde v1.0.0
TREE
    # A forbidden crate is found however deep it sits, and the path leads to it.
    expect dynamiccl-plugin "dynamiccl-plugin: dynamiccl-plugin -> dynamiccl-policies -> tensors -> burn-core
    rule: dynamiccl-plugin must not import burn-core, directly or through others" <<'TREE'
0|dynamiccl-plugin v0.1.0 (/home/me/dynamiccl/policies/plugin)
1|dynamiccl-policies v0.1.0 (/home/me/dynamiccl/policies)
2|dynamiccl-spec v0.1.0 (/home/me/dynamiccl/env/spec)
3|serde v1.0.0
2|tensors v1.0.0
3|burn-core v0.1.0
1|dynamiccl-spec v0.1.0 (/home/me/dynamiccl/env/spec) (*)
TREE
    expect dynamiccl "dynamiccl: dynamiccl -> dynamiccl-plugin
    rule: dynamiccl must not import dynamiccl-plugin, directly or through others" <<'TREE'
0|dynamiccl v0.1.0 (/home/me/dynamiccl)
1|clap v4.0.0
1|dynamiccl-plugin v0.1.0 (/home/me/dynamiccl/policies/plugin)
TREE
    expect newcomer "newcomer: no rule; add one to RULES in scripts/check-imports.sh" <<<"0|newcomer v0.1.0"
    echo "self-test: violations are found"
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
case "${1-}" in
    "") check_workspace ;;
    --self-test) self_test ;;
    *)
        echo "usage: scripts/check-imports.sh [--self-test]" >&2
        exit 2
        ;;
esac
