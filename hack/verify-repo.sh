#!/usr/bin/env bash
# Fails if the repository has content that does not belong there: paths of this machine, hosts of a
# private module proxy, files with a wrong mode, or unknown files at the top level.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

failed=0
complain() {
	failed=1
	printf 'error: %s\n' "$1" >&2
	[ $# -lt 2 ] || printf '%s\n' "$2" | sed 's/^/  /' >&2
}

files() { git ls-files --cached --others --exclude-standard "$@"; }

# 1. The top level has few entries, all of them known.
allowed='cmd pkg artifacts hack test docs go.mod go.sum Makefile README.md LICENSE SECURITY.md CONTRIBUTING.md CHANGELOG.md .ci .github .gitignore .golangci.yml'
while IFS= read -r entry; do
	case " ${allowed} " in
	*" ${entry} "*) ;;
	*) complain "${entry} at the top level; allowed are: ${allowed}" ;;
	esac
done < <(files | cut -d/ -f1 | sort -u)

# 2. Files do not name folders of this machine: the parent of the checkout, or the home folder.
# Common names are not searched for.
patterns=()
for folder in "$(dirname "$(pwd -P)")" "${HOME:-/}"; do
	case "${folder}" in / | /tmp | /usr | /usr/* | /home | /opt | /src | /go) ;; *) patterns+=("${folder}/") ;; esac
done
# Files do not name the module proxy of this network, either.
while IFS= read -r host; do
	patterns+=("${host}")
done < <(go env GOPROXY GOSUMDB GONOPROXY 2>/dev/null | tr ',| ' '\n\n\n' | sed -E 's#^[a-z]+://##; s#^[^/@]*@##; s#/.*##' |
	grep '\.' | grep -vxE 'proxy\.golang\.org|sum\.golang\.org' | sort -u)
for pattern in "${patterns[@]}"; do
	# A match must begin a word: the home folder /x/ must not match example.com/x/.
	escaped="$(printf '%s' "${pattern}" | sed 's/[][\.*^$]/\\&/g')"
	found="$(git grep --untracked -nIE "(^|[^A-Za-z0-9_./-])${escaped}" -- . ':!:**/go.sum' ':!:go.sum' | cut -c1-160 | head -n 5 || true)"
	[ -z "${found}" ] || complain "a path or host of this machine" "${found}"
done

# 3. Exactly the files with an interpreter line are executable.
while IFS= read -r file; do
	[ -f "${file}" ] || continue
	begin=''
	# A binary file is read up to its first zero byte; reading an empty file fails.
	LC_ALL=C IFS= read -r -d '' -n 2 begin <"${file}" || true
	if [ "${begin}" = '#!' ]; then
		[ -x "${file}" ] || complain "${file} begins with #! but is not executable: chmod +x"
	elif [ -x "${file}" ] && [ ! -L "${file}" ]; then
		complain "${file} is executable but no script: chmod -x"
	fi
done < <(files -- ':!:**/testdata/**')

# 4. Scripts are valid.
while IFS= read -r file; do
	[ ! -f "${file}" ] || bash -n "${file}" || complain "${file} is no valid script"
done < <(files -- 'hack/*.sh' .ci/run)

[ "${failed}" -eq 0 ] || exit 1
echo "$(files | wc -l | tr -d ' ') files are where they belong"
