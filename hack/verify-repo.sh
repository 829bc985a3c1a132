#!/usr/bin/env bash
# Fails when the repository holds what belongs elsewhere: paths of this machine,
# hosts of a private module proxy, files with the wrong mode, surprises at the
# top level.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() {
	failed=1
	printf 'error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/  /' >&2
}

files() { git ls-files --cached --others --exclude-standard "$@"; }

# 1. The top level has few things, each with a known place.
allowed='cmd pkg artifacts hack test docs go.mod go.sum Makefile README.md LICENSE SECURITY.md CONTRIBUTING.md CHANGELOG.md .ci .github .gitignore .golangci.yml'
while IFS= read -r entry; do
	case " ${allowed} " in
	*" ${entry} "*) ;;
	*) complain "${entry} at the top level; allowed are: ${allowed}" ;;
	esac
done < <(files | cut -d/ -f1 | sort -u)

# 2. Nobody else has the folders of this machine: the one above the checkout
# and the home folder, where these are specific enough to look for.
patterns=()
for folder in "$(dirname "$(pwd -P)")" "${HOME:-/}"; do
	case "${folder}" in / | /tmp | /usr | /usr/* | /home | /opt | /src | /go) ;; *) patterns+=("${folder}/") ;; esac
done
# Nor the module proxy of this network.
while IFS= read -r host; do
	patterns+=("${host}")
done < <(go env GOPROXY GOSUMDB GONOPROXY 2>/dev/null | tr ',| ' '\n\n\n' | sed -E 's#^[a-z]+://##; s#^[^/@]*@##; s#/.*##' |
	grep '\.' | grep -vxE 'proxy\.golang\.org|sum\.golang\.org' | sort -u)
for pattern in "${patterns[@]}"; do
	# At the start of a word: a home folder /x/ is not meant by example.com/x/.
	escaped="$(printf '%s' "${pattern}" | sed 's/[][\.*^$]/\\&/g')"
	found="$(git grep --untracked -nIE "(^|[^A-Za-z0-9_./-])${escaped}" -- . ':!:**/go.sum' ':!:go.sum' | cut -c1-160 | head -n 5 || true)"
	[ -z "${found}" ] || complain "a path or host of this machine" "${found}"
done

# 3. What has an interpreter is executable, and nothing else is.
while IFS= read -r file; do
	[ -f "${file}" ] || continue
	begin=''
	# A file without text is read up to its first zero byte; an empty one fails.
	LC_ALL=C IFS= read -r -d '' -n 2 begin <"${file}" || true
	if [ "${begin}" = '#!' ]; then
		[ -x "${file}" ] || complain "${file} begins with #! but is not executable: chmod +x"
	elif [ -x "${file}" ] && [ ! -L "${file}" ]; then
		complain "${file} is executable but no script: chmod -x"
	fi
done < <(files -- ':!:**/testdata/**')

# 4. Scripts parse.
while IFS= read -r file; do
	[ ! -f "${file}" ] || bash -n "${file}" || complain "${file} is no valid script"
done < <(files -- 'hack/*.sh' .ci/run)

[ "${failed}" -eq 0 ] || exit 1
echo "$(files | wc -l | tr -d ' ') files are where they belong"
