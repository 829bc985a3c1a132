#!/usr/bin/env bash
# Fails when staticcheck finds something. Its version is pinned in
# hack/tools/lint and compiled into the cache of tools on first use.
#
# It looks at the packages whose files are not those with which they passed. staticcheck
# itself looks again at each that depends on what changed, mostly nearly all, which takes
# two minutes of a processor and finds little more than a use of what is deprecated now:
# FULL=1 does it.
#
# inputs: *.go hack/tags go.mod go.sum test/bench/go.mod test/bench/go.sum test/console/go.mod test/console/go.sum hack/tools/lint
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. hack/tags.sh

version="$(sed -n 's|^[[:space:]]*\(require \)\{0,1\}honnef.co/go/tools \(v[^ ]*\).*|\2|p' hack/tools/lint/go.mod)"
cache="${PENSTOCK_TOOLS_DIR:-${XDG_CACHE_HOME:-${HOME}/.cache}/penstock/tools}/staticcheck-${version}-$(go env GOVERSION)"
if [ ! -x "${cache}/staticcheck" ]; then
	echo "building staticcheck ${version}, usually 20 s" >&2
	mkdir -p "${cache}"
	# -trimpath, as all else: the standard library is compiled once.
	(cd hack/tools/lint && GOFLAGS=-trimpath GOWORK=off go build -o "${cache}/.staticcheck.$$" honnef.co/go/tools/cmd/staticcheck)
	mv "${cache}/.staticcheck.$$" "${cache}/staticcheck"
fi

work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
# What else decides has a list of its own.
passed="${cache%/*}/verified/staticcheck-of-$({ go env GOVERSION; cat "$0" hack/tags go.mod test/bench/go.mod test/console/go.mod hack/tools/lint/go.mod; } |
	git hash-object --stdin | cut -c1-12)"
mkdir -p "${passed%/*}"
[ "${FULL:-}" != 1 ] && cp "${passed}" "${work}/passed" 2>/dev/null || : >"${work}/passed"

# Each folder with its files and their content, in a line.
git ls-files --cached --others --exclude-standard -- '*.go' ':!:**/testdata/**' | sort |
	while IFS= read -r file; do [ ! -f "${file}" ] || printf '%s\n' "${file}"; done >"${work}/files"
git hash-object --no-filters --stdin-paths <"${work}/files" | paste "${work}/files" - |
	awk '{ folder = $1; sub("/[^/]*$", "", folder); sub("^.*/", "", $1); line[folder] = line[folder] " " $1 ":" $2 }
		END { for (folder in line) print folder line[folder] }' >"${work}/folders"
grep -Fvx -f "${work}/passed" "${work}/folders" >"${work}/changed" || true

# All checks, with those that are usually left out: a package comment and
# comments that begin with the name are habits of this house. Not ST1003, because
# conversion-gen finds functions by names with underscores. What is generated has
# habits of its own.
# The benchmarks and the tests of the console are modules of their own.
root="$(go list -m -f '{{.Dir}}')"
count=0
for module in . test/bench test/console; do
	packages=()
	while IFS= read -r package; do
		packages+=("${package}")
	done < <(cd "${module}" && GOWORK=off go list -f '{{.Dir}} {{.ImportPath}}' ./... | grep -v '/pkg/generated\(/\|$\)' | sed "s|^${root}/||" |
		awk -v changed="${work}/changed" 'BEGIN { while ((getline line < changed) > 0) { sub(" .*", "", line); is[line] } } $1 in is { print $2 }')
	[ "${#packages[@]}" -gt 0 ] || continue
	(cd "${module}" && GOFLAGS="${GOFLAGS} -trimpath" GOWORK=off "${cache}/staticcheck" -checks all,-ST1003 "${packages[@]}")
	count=$((count + ${#packages[@]}))
done
# The latest are enough: those of one state of the work tree are a few hundred.
cat "${work}/passed" "${work}/changed" | tail -n 3000 >"${work}/now"
mv "${work}/now" "${passed}"
echo "staticcheck finds nothing in ${count} packages with other content than before"
