package clusterreads

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/server/host"
	"github.com/penstock-project/penstock/pkg/server/targetcluster"
)

const (
	// typesAge is the time during which types of a cluster are used without a check for newer
	// types. A refusal by old types is repeated with new types at once. If old types let an object
	// pass, the preflight of the rollout refuses it.
	typesAge = 5 * time.Minute
	// maxDocuments bounds the kept documents of all clusters, and maxDocumentBytes the size of
	// each. Larger documents are not read. Types take about as much memory as their document.
	maxDocuments     = 16
	maxDocumentBytes = 4 << 20
)

// applyChecks finds the manifests that server-side apply would refuse, by the types of their target
// cluster.
type applyChecks struct {
	builtin *applycheck.BuiltinTypes
	// here is the default target cluster.
	here    *rest.Config
	targets *TargetClients

	mu        sync.Mutex
	documents map[documentKey]*document
}

type documentKey struct {
	secret  string
	version schema.GroupVersion
}

type document struct {
	types *applycheck.OpenAPI // nil when the cluster does not have the group version
	hash  string
	read  time.Time
}

func newApplyChecks(h *host.Host, target *targetcluster.Cluster, targets *TargetClients) (*applyChecks, error) {
	builtin, err := applycheck.Builtin()
	if err != nil {
		return nil, err
	}
	here := h.ConfigFor("applycheck")
	if target != nil {
		here = target.Config("applycheck")
	}
	return &applyChecks{builtin: builtin, here: here, targets: targets, documents: map[documentKey]*document{}}, nil
}

// Check implements clusterextensionrevision.ApplyCheck.
func (a *applyChecks) Check(ctx context.Context, secret string, objects []manifest.Object) ([]applycheck.Refusal, error) {
	return applycheck.Check(ctx, a.builtin, &clusterTypes{checks: a, secret: secret}, objects)
}

// Foresee implements clusterextensionrevision.ApplyCheck.
func (a *applyChecks) Foresee(ctx context.Context, secret string, objects []manifest.Object) []applycheck.Note {
	return applycheck.Foresee(ctx, a.builtin, &surroundings{checks: a, secret: secret}, objects)
}

// surroundings holds the facts of one cluster, for one request.
type surroundings struct {
	checks *applyChecks
	secret string
	client discovery.DiscoveryInterfaceWithContext
	core   corev1client.CoreV1Interface
	groups *metav1.APIGroupList
}

var _ applycheck.Surroundings = &surroundings{}

func (s *surroundings) connect(ctx context.Context) error {
	if s.client != nil {
		return nil
	}
	config, err := s.checks.config(ctx, s.secret)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for what the cluster has: %w", err)
	}
	s.client, s.core = discovery.ToDiscoveryInterfaceWithContext(client.Discovery()), client.CoreV1()
	return nil
}

// Versions implements applycheck.Surroundings.
func (s *surroundings) Versions(ctx context.Context, kind schema.GroupKind) ([]string, error) {
	ctx, cancel := context.WithTimeout(ctx, hostReadTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return nil, err
	}
	if s.groups == nil {
		var err error
		if s.groups, err = s.client.ServerGroupsWithContext(ctx); err != nil {
			return nil, fmt.Errorf("reading which API groups the cluster has: %w", err)
		}
	}
	var versions []string
	for _, group := range s.groups.Groups {
		if group.Name != kind.Group {
			continue
		}
		for _, version := range group.Versions {
			list, err := s.client.ServerResourcesForGroupVersionWithContext(ctx, version.GroupVersion)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, fmt.Errorf("reading which kinds the cluster has in %s: %w", version.GroupVersion, err)
			}
			if err == nil && slices.ContainsFunc(list.APIResources, func(one metav1.APIResource) bool { return one.Kind == kind.Kind }) {
				versions = append(versions, version.Version)
			}
		}
	}
	return versions, nil
}

// HasNamespace implements applycheck.Surroundings.
func (s *surroundings) HasNamespace(ctx context.Context, name string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, hostReadTimeout)
	defer cancel()
	if err := s.connect(ctx); err != nil {
		return false, err
	}
	_, err := s.core.Namespaces().Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	return err == nil, err
}

// config returns the configuration for the cluster of a Secret, or for the default target without a
// Secret.
func (a *applyChecks) config(ctx context.Context, secret string) (*rest.Config, error) {
	if secret == "" {
		return a.here, nil
	}
	client, err := a.targets.to(ctx, secret)
	if err != nil {
		return nil, err
	}
	return client.config, nil
}

// clusterTypes holds the types of one cluster, for one request.
type clusterTypes struct {
	checks *applyChecks
	secret string
	client rest.Interface
	// index maps each group version to the address of its document; nil until it is needed.
	index map[string]string
}

var _ applycheck.Cluster = &clusterTypes{}

// TypeOf implements applycheck.Cluster. It reads a document again only if the cluster has a new
// version of it.
func (c *clusterTypes) TypeOf(ctx context.Context, kind schema.GroupVersionKind, fresh bool) (*applycheck.Type, error) {
	ctx, cancel := context.WithTimeout(ctx, hostReadTimeout)
	defer cancel()
	key := documentKey{c.secret, kind.GroupVersion()}
	known := c.checks.known(key)
	if known == nil || fresh || time.Since(known.read) > typesAge {
		var err error
		if known, err = c.refresh(ctx, key, known); err != nil {
			return nil, err
		}
	}
	if known.types == nil {
		return nil, nil
	}
	return known.types.TypeOf(kind), nil
}

func (c *clusterTypes) refresh(ctx context.Context, key documentKey, known *document) (*document, error) {
	if err := c.readIndex(ctx); err != nil {
		return nil, err
	}
	address := c.index[pathOf(key.version)]
	if known != nil && known.hash == address {
		c.checks.keep(key, &document{types: known.types, hash: address, read: time.Now()})
		return known, nil
	}
	read := &document{hash: address, read: time.Now()}
	if address != "" {
		content, err := c.client.Get().RequestURI(address).SetHeader("Accept", "application/json").Do(ctx).Raw()
		if err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", key.version, err)
		}
		if len(content) > maxDocumentBytes {
			return nil, fmt.Errorf("reading the types of %s: the document has %d bytes, %d are read", key.version, len(content), maxDocumentBytes)
		}
		if read.types, err = applycheck.NewOpenAPI(content); err != nil {
			return nil, fmt.Errorf("reading the types of %s: %w", key.version, err)
		}
	}
	c.checks.keep(key, read)
	return read, nil
}

// readIndex reads the list of the cluster's documents, once per request. A document's address
// contains a digest of its content.
func (c *clusterTypes) readIndex(ctx context.Context) error {
	if c.index != nil {
		return nil
	}
	config, err := c.checks.config(ctx, c.secret)
	if err != nil {
		return err
	}
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return fmt.Errorf("making a client for types: %w", err)
	}
	c.client = client.RESTClient()
	content, err := c.client.Get().AbsPath("/openapi/v3").Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("reading which types the cluster has: %w", err)
	}
	var index struct {
		Paths map[string]struct {
			ServerRelativeURL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(content, &index); err != nil {
		return fmt.Errorf("reading which types the cluster has: %w", err)
	}
	c.index = make(map[string]string, len(index.Paths))
	for path, entry := range index.Paths {
		c.index[path] = entry.ServerRelativeURL
	}
	return nil
}

func pathOf(version schema.GroupVersion) string {
	if version.Group == "" {
		return "api/" + version.Version
	}
	return "apis/" + version.String()
}

func (a *applyChecks) known(key documentKey) *document {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.documents[key]
}

// keep stores a document. It replaces the oldest document when there are too many.
func (a *applyChecks) keep(key documentKey, read *document) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.documents[key] = read
	if len(a.documents) <= maxDocuments {
		return
	}
	var oldest documentKey
	for candidate, one := range a.documents {
		if before, found := a.documents[oldest]; !found || one.read.Before(before.read) {
			oldest = candidate
		}
	}
	delete(a.documents, oldest)
}
