package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

// maxObjectName is the length that OLM gives to names which it makes.
const maxObjectName = 63

// roleName is the name of a role with a permission, and of its binding. It is the one that
// OLM gives it, so that an existing installation can be taken over: the SHA-224 of the
// permission as encoding/json writes it, in base 36, behind the names of the
// ClusterServiceVersion and the ServiceAccount.
func roleName(csvName string, of permission) (string, error) {
	var encoded bytes.Buffer
	if err := json.NewEncoder(&encoded).Encode(of); err != nil {
		return "", fmt.Errorf("naming the role of ServiceAccount %s: %w", of.serviceAccount(), err)
	}
	sum := sha256.Sum224(encoded.Bytes())
	return joinName(csvName+"-"+of.serviceAccount(), new(big.Int).SetBytes(sum[:]).Text(36)), nil
}

// joinName joins two parts by a dash, and cuts the first so that the name is short enough.
func joinName(base, suffix string) string {
	if len(base)+1+len(suffix) > maxObjectName {
		base = base[:maxObjectName-1-len(suffix)]
	}
	return base + "-" + suffix
}

// serviceName is that of the Service of a Deployment's webhooks.
func serviceName(deployment string) string {
	return joinName(strings.ReplaceAll(deployment, ".", "-"), "service")
}

// certificateName is that of the certificate of a Service, and of its Secret.
func certificateName(service string) string { return joinName(service, "cert") }

// issuerName is that of the issuer of a certificate.
func issuerName(certificate string) string { return joinName(certificate, "selfsigned-issuer") }
