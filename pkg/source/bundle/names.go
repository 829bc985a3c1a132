package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// maxObjectName is OLM's limit for generated names.
const maxObjectName = 63

// roleName returns the name of the role and of the binding for a permission. It equals OLM's name,
// so that Penstock can adopt an installation. The name consists of the names of the
// ClusterServiceVersion and the ServiceAccount, and the SHA-224 of the permission's JSON (as
// written by encoding/json) in base 36.
func roleName(csvName string, of permission) (string, error) {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(of); err != nil {
		return "", fmt.Errorf("naming the role of ServiceAccount %s: %w", of.serviceAccount(), err)
	}
	sum := sha256.Sum224(encoded.Bytes())
	return joinName(csvName+"-"+of.serviceAccount(), new(big.Int).SetBytes(sum[:]).Text(36)), nil
}

// joinName joins two parts by a dash, and truncates the first so that the name is short enough.
func joinName(base, suffix string) string {
	if len(base)+1+len(suffix) > maxObjectName {
		base = base[:maxObjectName-1-len(suffix)]
	}
	return base + "-" + suffix
}

func serviceName(deployment string) string {
	return joinName(strings.ReplaceAll(deployment, ".", "-"), "service")
}

// certificateName returns the name of a Service's certificate and of its Secret.
func certificateName(service string) string { return joinName(service, "cert") }

func issuerName(certificate string) string { return joinName(certificate, "selfsigned-issuer") }
