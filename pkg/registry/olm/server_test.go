package olm_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"
	"k8s.io/apiserver/pkg/endpoints/openapi"
	"k8s.io/apiserver/pkg/registry/generic"
	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	restclient "k8s.io/client-go/rest"
	basecompatibility "k8s.io/component-base/compatibility"

	hub "github.com/penstock-project/penstock/pkg/apis/olm"
	"github.com/penstock-project/penstock/pkg/apis/olm/install"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/applycheck"
	"github.com/penstock-project/penstock/pkg/clusterversion"
	diffschema "github.com/penstock-project/penstock/pkg/diff/schema"
	generatedopenapi "github.com/penstock-project/penstock/pkg/generated/openapi"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/registry/encoding"
	"github.com/penstock-project/penstock/pkg/registry/guardedstorage"
	"github.com/penstock-project/penstock/pkg/registry/olm"
	"github.com/penstock-project/penstock/pkg/registry/olm/clusterextensionrevision"
	"github.com/penstock-project/penstock/pkg/registry/olm/revisiondiff"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/requestbody"
	"github.com/penstock-project/penstock/pkg/rollout/probe"
	"github.com/penstock-project/penstock/pkg/store/chain"
	"github.com/penstock-project/penstock/pkg/store/chainversion"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/store/storetest"
)

const (
	prefix    = "/penstock"
	revisions = "/apis/olm.operatorframework.io/v1alpha1/clusterextensionrevisions"
)

// server is the API group with the library's handlers and a real etcd. It has no TLS, no
// aggregation, and no policies of a cluster.
type server struct {
	t       *testing.T
	url     string
	etcd    *clientv3.Client
	heads   *chain.Heads
	bodies  *faultyBodies
	policy  *policy
	rules   *rules
	storage *clusterextensionrevision.Storage
	scheme  *runtime.Scheme
	// handler serves the requests to url.
	handler http.Handler
}

type settings struct {
	owners       *owners
	stored       storedVersions
	live         revisiondiff.Live
	budget       *requestbody.Budget
	maxBodyBytes int64
	patience     time.Duration
	applyCheck   *applyCheck
	statements   upgradereadiness.Statements
}

func newServer(t *testing.T, settings settings) *server {
	t.Helper()
	scheme := runtime.NewScheme()
	install.Install(scheme)
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	codecs := serializer.NewCodecFactory(scheme)

	client := storetest.Client(t)
	digester := manifest.Digester{SecretKey: []byte("0123456789abcdef0123456789abcdef")}
	s := &server{
		t: t, etcd: client, policy: &policy{}, rules: &rules{}, scheme: scheme,
		bodies: &faultyBodies{Store: pack.New(client, prefix, digester)},
	}

	config := genericapiserver.NewConfig(codecs)
	config.ExternalAddress = "localhost:443"
	config.PublicAddress = net.IPv4(127, 0, 0, 1)
	config.LoopbackClientConfig = &restclient.Config{}
	config.EffectiveVersion = basecompatibility.NewEffectiveVersionFromString("1.37", "", "")
	config.FeatureGate = utilfeature.DefaultFeatureGate
	namer := openapi.NewDefinitionNamer(scheme)
	config.OpenAPIConfig = genericapiserver.DefaultOpenAPIConfig(generatedopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIConfig.Info.Version = "test"
	config.OpenAPIV3Config = genericapiserver.DefaultOpenAPIV3Config(generatedopenapi.GetOpenAPIDefinitions, namer)
	config.OpenAPIV3Config.Info.Version = "test"
	config.Authentication.Authenticator = authenticator.RequestFunc(authenticate)
	config.Authorization.Authorizer = s.rules
	config.AdmissionControl = s.policy
	if settings.maxBodyBytes > 0 {
		config.MaxRequestBodyBytes = settings.maxBodyBytes
	}
	config.BuildHandlerChainFunc = func(handler http.Handler, c *genericapiserver.Config) http.Handler {
		chain := genericapiserver.DefaultBuildHandlerChain(clusterextensionrevision.WithBodies(handler, clusterextensionrevision.FilterDeps{
			Digester:     digester,
			Serializer:   encoding.Text(codecs),
			Budget:       settings.budget,
			MaxBodyBytes: c.MaxRequestBodyBytes,
			Stored: func(ctx context.Context, name string) (*hub.ClusterExtensionRevision, error) {
				return s.storage.Revision.Stored(ctx, name)
			},
			Authorizer: s.rules,
		}), c)
		if settings.patience == 0 {
			settings.patience = requestbody.DefaultPatience
		}
		return requestbody.WithPatience(chain, settings.patience)
	}
	apiServer, err := config.Complete(nil).New("test", genericapiserver.NewEmptyDelegate())
	if err != nil {
		t.Fatalf("making the server: %v", err)
	}
	s.heads = chain.NewHeads(client, prefix)
	types, err := diffschema.NewBuiltin()
	if err != nil {
		t.Fatalf("reading the types of Kubernetes: %v", err)
	}
	if settings.owners == nil {
		settings.owners = &owners{err: errors.New("the host is away")}
	}
	deps := olm.Deps{
		Deps: clusterextensionrevision.Deps{
			Scheme:        scheme,
			OptsGetter:    restOptions(client),
			Bodies:        s.bodies,
			ChainVersions: chainversion.New(client, prefix), Inventories: chain.NewInventories(client, prefix),
			Digester:    digester,
			Authorizer:  s.rules,
			ApplyCheck:  allApplies{},
			CheckCEL:    probe.NewCELChecker(),
			NameWarning: func() string { return "" },
			Shares:      plenty(),
		},
		Heads:          s.heads,
		Schema:         types,
		Admission:      s.policy,
		Owners:         settings.owners,
		StoredVersions: settings.stored,
		Live:           settings.live,
		ClusterVersion: func(context.Context) *clusterversion.Kubernetes { return nil },
		Statements:     settings.statements,
		Reserve: func(ctx context.Context) (context.Context, func(), error) {
			return s.bodies.Store.Reserve(ctx, client)
		},
	}
	if settings.applyCheck != nil {
		deps.ApplyCheck = settings.applyCheck
	}
	info, storage, err := olm.NewAPIGroupInfo(codecs, deps)
	if err != nil {
		t.Fatalf("making the storage: %v", err)
	}
	t.Cleanup(storage.Revision.Destroy)
	s.storage = storage
	if err := apiServer.InstallAPIGroup(info); err != nil {
		t.Fatalf("installing the group: %v", err)
	}
	err = wait.PollUntilContextTimeout(t.Context(), 5*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		return storage.Revision.ReadinessCheck() == nil, nil
	})
	if err != nil {
		t.Fatalf("waiting for the watch cache: %v", err)
	}
	s.handler = apiServer.Handler
	front := httptest.NewServer(s.handler)
	t.Cleanup(front.Close)
	s.url = front.URL
	return s
}

type allApplies struct{}

func (allApplies) Check(context.Context, string, []manifest.Object) ([]applycheck.Refusal, error) {
	return nil, nil
}

func (allApplies) Foresee(context.Context, string, []manifest.Object) []applycheck.Note { return nil }

// plenty returns shares of a store with room for everything.
func plenty() *clusterextensionrevision.Shares {
	return &clusterextensionrevision.Shares{Room: func() (int64, bool) { return 0, false }}
}

func restOptions(client *clientv3.Client) generic.RESTOptions {
	config := storagebackend.NewDefaultConfig(prefix, nil)
	config.Transport.ServerList = client.Endpoints()
	return generic.RESTOptions{
		StorageConfig:           config.ForResource(v1alpha1.Resource("clusterextensionrevisions")),
		Decorator:               guardedstorage.WithCacher(),
		EnableGarbageCollection: true,
		DeleteCollectionWorkers: 1,
		ResourcePrefix:          "olm.operatorframework.io/clusterextensionrevisions",
	}
}

func authenticate(req *http.Request) (*authenticator.Response, bool, error) {
	name := req.Header.Get("Test-User")
	if name == "" {
		name = "alice"
	}
	return &authenticator.Response{User: &user.DefaultInfo{
		Name: name, UID: "uid-" + name, Groups: []string{"devs", user.AllAuthenticated}, Extra: map[string][]string{"scope": {"all"}},
	}}, true, nil
}

// rules allows everything, except the denied actions and reading the hidden Secrets.
type rules struct {
	mu     sync.Mutex
	denied map[string][]string // by user: "get clusterextensionrevisions/diff e-1"
	hidden []string            // namespace/name, or namespace/* for the right to read all Secrets of a namespace
	blind  string              // a user who may get no Secret
	fail   error
	asked  int // about Secrets
}

// questions returns the number of checks about Secrets since the last call.
func (r *rules) questions() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	asked := r.asked
	r.asked = 0
	return asked
}

func (r *rules) set(blind string, fail error, hidden ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.blind, r.fail, r.hidden = blind, fail, hidden
}

func (r *rules) deny(user string, what ...string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.denied == nil {
		r.denied = map[string][]string{}
	}
	r.denied[user] = append(r.denied[user], what...)
}

func (r *rules) Authorize(_ context.Context, a authorizer.Attributes) (authorizer.Decision, string, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := a.GetVerb() + " " + a.GetResource()
	if a.GetSubresource() != "" {
		what += "/" + a.GetSubresource()
	}
	if slices.Contains(r.denied[a.GetUser().GetName()], strings.TrimSpace(what+" "+a.GetName())) {
		return authorizer.DecisionNoOpinion, "no", nil
	}
	if a.GetResource() != "secrets" {
		return authorizer.DecisionAllow, "", nil
	}
	r.asked++
	name := a.GetName()
	if name == "" {
		name = "*"
	}
	if r.fail != nil || a.GetUser().GetName() == r.blind || slices.Contains(r.hidden, a.GetNamespace()+"/"+name) {
		return authorizer.DecisionNoOpinion, "no", r.fail
	}
	return authorizer.DecisionAllow, "", nil
}

func (r *rules) ConditionsAwareAuthorize(ctx context.Context, a authorizer.Attributes) authorizer.ConditionsAwareDecision {
	return authorizer.ConditionsAwareDecisionFromParts(r.Authorize(ctx, a))
}

func (r *rules) EvaluateConditions(context.Context, authorizer.ConditionsAwareDecision, authorizer.ConditionsData) (authorizer.Decision, string, error) {
	return authorizer.DecisionDeny, "", authorizer.ErrorConditionEvaluationNotSupported
}

// policy is a validating admission that records the objects it sees, and a mutating admission with
// a configurable function.
type policy struct {
	mu     sync.Mutex
	deny   bool
	seen   []admission.Attributes
	change func(*hub.ClusterExtensionRevision)
	// meanwhile is called once, while the next revision is judged.
	meanwhile func()
	// undeletable is the name of a revision whose deletion is refused.
	undeletable string
}

func (p *policy) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if revision, ok := a.GetObject().(*hub.ClusterExtensionRevision); ok && p.change != nil {
		p.change(revision)
	}
	return nil
}

func (p *policy) mutate(change func(*hub.ClusterExtensionRevision)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.change = change
}

func (p *policy) Handles(admission.Operation) bool { return true }

func (p *policy) Validate(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	p.mu.Lock()
	meanwhile := p.meanwhile
	if _, ok := a.GetObject().(*hub.ClusterExtensionRevision); ok {
		p.meanwhile = nil
	} else {
		meanwhile = nil
	}
	p.mu.Unlock()
	if meanwhile != nil {
		meanwhile()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, a)
	if old, ok := a.GetOldObject().(*hub.ClusterExtensionRevision); ok && p.undeletable != "" && a.GetOperation() == admission.Delete && old.Name == p.undeletable {
		return admission.NewForbidden(a, fmt.Errorf("nobody may delete %s", old.Name))
	}
	if p.deny {
		return admission.NewForbidden(a, fmt.Errorf("the policy says no"))
	}
	return nil
}

func (p *policy) set(deny bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.deny = deny
}

// pause makes the policy call a function while the next revision is judged.
func (p *policy) pause(meanwhile func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.meanwhile = meanwhile
}

func (p *policy) refuse(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.undeletable = name
}

func (p *policy) last() admission.Attributes {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[len(p.seen)-1]
}

// faultyBodies is the pack store, which can lose packs.
type faultyBodies struct {
	*pack.Store
	lose error
}

var errLost = errors.New("the pack is lost")

func (b *faultyBodies) Read(ctx context.Context, root string) (map[manifest.Digest][]byte, error) {
	if b.lose != nil {
		return nil, b.lose
	}
	return b.Store.Read(ctx, root)
}

type response struct {
	code     int
	body     map[string]any
	raw      string
	warnings []string
	header   http.Header
}

type call struct {
	method, path, contentType, user, accept string
	body                                    any
}

func (s *server) do(c call) response {
	s.t.Helper()
	var body []byte
	switch given := c.body.(type) {
	case nil:
	case string:
		body = []byte(given)
	default:
		var err error
		if body, err = json.Marshal(given); err != nil {
			s.t.Fatalf("encoding a request: %v", err)
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), c.method, s.url+c.path, bytes.NewReader(body))
	if err != nil {
		s.t.Fatalf("making a request: %v", err)
	}
	if c.contentType == "" {
		c.contentType = "application/json"
	}
	req.Header.Set("Content-Type", c.contentType)
	req.Header.Set("Test-User", c.user)
	req.Header.Set("Accept", c.accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	defer func() { _ = res.Body.Close() }()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", c.method, c.path, err)
	}
	out := response{code: res.StatusCode, raw: string(raw), header: res.Header, warnings: res.Header.Values("Warning")}
	if strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		if err := json.Unmarshal(raw, &out.body); err != nil {
			s.t.Fatalf("%s %s: %v", c.method, c.path, err)
		}
	}
	return out
}

// want fails the test if the answer has another code.
func (r response) want(t *testing.T, code int) response {
	t.Helper()
	if r.code != code {
		t.Fatalf("status %d, want %d: %s", r.code, code, r.raw)
	}
	return r
}
