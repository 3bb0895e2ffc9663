# Sourced by the scripts beside it: sets `suite`, `out` and `python`, an interpreter with the suite and a package.
#
#     OUT           folder of what is written; default: ./verification
#     PYTHON        interpreter of which an environment is made; default: python3
#     PYTHON_READY  interpreter that is used as it is: nothing is installed
#     VENV          folder of the environment, which is kept and used again; default: a temporary one

suite="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
out="$(mkdir -p "${OUT:-verification}" && cd "${OUT:-verification}" && pwd)"
python="${PYTHON_READY:-}"

# Install the suite and what follows as arguments for pip. In an environment that is kept, what is there already is not
# installed again, but for the package itself, whose version need not change with its code.
prepare() {
    [ -z "$python" ] || return 0
    local venv="${VENV:-}"
    if [ -z "$venv" ]; then
        venv="$(mktemp -d)/venv"
        trap 'rm -rf "'"${venv%/venv}"'"' EXIT
    fi
    if ! "$venv/bin/python" -c '' 2>/dev/null; then "${PYTHON:-python3}" -m venv --clear "$venv"; fi
    python="$venv/bin/python"
    local pip=("$python" -m pip install --quiet --disable-pip-version-check)
    "${pip[@]}" -e "$suite[reports]" "$@" >&2
    if [ $# != 0 ] && [ -n "${VENV:-}" ]; then "${pip[@]}" --force-reinstall --no-deps "$@" >&2; fi
}

# Forget what an earlier run left: it must not stand for this one.
forget() {
    rm -f "$out"/results.jsonl "$out"/results.xml "$out"/errors.txt "$out"/summary.md "$out"/codequality.json \
        "$out"/badge.svg "$out"/badge.json
}

# The last step of a run; its exit code is that of the job.
conclude() {
    "$python" -P -m sgmcmc_verification.reports conclude "$out" "$@"
}
