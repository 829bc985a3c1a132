#!/usr/bin/env bash
# Copies the libraries of the console from npm to pkg/console/web/vendor, and changes only their
# imports to paths. Otherwise a browser would need an import map, which would be an inline script.
# VERSIONS lists each file, with its package, version, integrity in npm and checksum here.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

vendor=pkg/console/web/vendor
# FILE PACKAGE VERSION PATH-IN-PACKAGE
libraries='
preact.js       preact               11.2.0  dist/preact.mjs
hooks.js        preact               11.2.0  hooks/dist/hooks.mjs
signals-core.js @preact/signals-core 1.14.5  dist/signals-core.mjs
signals.js      @preact/signals      2.11.4  dist/signals.mjs
htm.js          htm                  3.1.1   dist/htm.mjs
'
work="$(mktemp -d)"
trap 'rm -rf "${work}"' EXIT
printf '# file package version integrity sha256\n' >"${work}/VERSIONS"
while read -r file package version path; do
	[ -n "${file}" ] || continue
	name="$(printf '%s' "${package}" | tr -d @ | tr / -)"
	if [ ! -d "${work}/${name}" ]; then
		mkdir "${work}/${name}"
		(cd "${work}" && npm pack --silent "${package}@${version}" >/dev/null)
		tar -xzf "${work}/${name}-${version}.tgz" -C "${work}/${name}" --strip-components 1
		cp "${work}/${name}/LICENSE" "${vendor}/LICENSE.${name}"
		chmod 644 "${vendor}/LICENSE.${name}"
	fi
	sed -e 's|from *"preact"|from"./preact.js"|g; s|from *"preact/hooks"|from"./hooks.js"|g' \
		-e 's|from *"@preact/signals-core"|from"./signals-core.js"|g; s|^//# sourceMappingURL=.*||; s|//# sourceMappingURL=.*||' \
		"${work}/${name}/${path}" >"${vendor}/${file}"
	printf '%s %s %s %s %s\n' "${file}" "${package}" "${version}" \
		"sha512-$(openssl dgst -sha512 -binary "${work}/${name}-${version}.tgz" | base64 -w 0)" \
		"$(sha256sum "${vendor}/${file}" | cut -d ' ' -f 1)" >>"${work}/VERSIONS"
done <<<"${libraries}"
cp "${work}/VERSIONS" "${vendor}/VERSIONS"
chmod 644 "${vendor}/VERSIONS"
