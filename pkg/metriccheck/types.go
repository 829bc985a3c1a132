package metriccheck

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the API resource of MetricChecks.
var Resource = schema.GroupVersionResource{Group: "penstock.dev", Version: "v1alpha1", Resource: "metricchecks"}

// Kind is the kind of MetricChecks.
var Kind = Resource.GroupVersion().WithKind("MetricCheck")

// TokenLabel marks a Secret whose token MetricChecks may send, with the value "true".
const TokenLabel = "penstock.dev/metric-check-token"

// TokenKey is the key of the token in its Secret.
const TokenKey = "token"

// MetricCheck is a query to a metric service.
type MetricCheck struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec Spec `json:"spec"`
}

// Spec is the part that administrators write.
type Spec struct {
	// Address is the URL of the service.
	Address string `json:"address"`
	// CABundle has the service's certificate authorities as PEM; empty uses this machine's
	// authorities.
	CABundle []byte `json:"caBundle,omitempty"`
	// TokenSecret names a Secret in the namespace of Penstock; empty sends no token.
	TokenSecret string `json:"tokenSecret,omitempty"`
	// Query is in PromQL, with placeholders.
	Query string `json:"query"`
	// Min and Max bound a sample that counts as Yes; at least one is set.
	Min *float64 `json:"min,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// InitialDelaySeconds is the delay of the first query after the objects became Available.
	InitialDelaySeconds int32 `json:"initialDelaySeconds"`
}

// The placeholders of Spec.Query.
const (
	extensionPlaceholder = "{{extension}}"
	namespacePlaceholder = "{{namespace}}"
)

// From parses a MetricCheck. It validates specs that were stored under another definition, which
// the present definition did not check.
func From(object *unstructured.Unstructured) (*MetricCheck, error) {
	read := &MetricCheck{}
	content, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(content, read)
	}
	if err != nil {
		return nil, fmt.Errorf("reading MetricCheck %s: %w", object.GetName(), err)
	}
	at, err := url.Parse(read.Spec.Address)
	switch {
	case err != nil || at.Hostname() == "" || at.Scheme != "http" && at.Scheme != "https" || at.User != nil || at.RawQuery != "" || at.Fragment != "":
		return nil, errors.New("its spec.address is not an http or https URL without user and query")
	case read.Spec.TokenSecret != "" && at.Scheme != "https":
		return nil, errors.New("its spec.address is not https, and spec.tokenSecret needs that")
	case read.Spec.Min == nil && read.Spec.Max == nil:
		return nil, errors.New("its spec has neither min nor max")
	}
	return read, nil
}

// Digest identifies a spec: an answer is valid only for its spec.
func (s *Spec) Digest() string {
	content, err := json.Marshal(s)
	if err != nil {
		return "" // encoding cannot fail: numbers from JSON are finite
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:16])
}

// Expression returns the query for an extension whose workloads are in namespaces.
func (s *Spec) Expression(extension string, namespaces []string) (string, error) {
	query := strings.ReplaceAll(s.Query, extensionPlaceholder, quote(extension))
	if strings.Contains(query, namespacePlaceholder) {
		if len(namespaces) != 1 {
			return "", fmt.Errorf("its query has %s, and the workloads of the extension are in %d namespaces", namespacePlaceholder, len(namespaces))
		}
		query = strings.ReplaceAll(query, namespacePlaceholder, quote(namespaces[0]))
	}
	return query, nil
}

func quote(value string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "{{", "").Replace(value) + `"`
}
