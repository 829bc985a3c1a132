//go:build integration

package extension_test

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/extensionset"
	"github.com/penstock-project/penstock/pkg/fleet"
	"github.com/penstock-project/penstock/test/framework/cluster"
)

// clusters are scenarios at the same time on three control planes. Each has a set, namespaces, and ways to
// the control planes of its own, which it can disturb.
func clusters(w shared) {
	planes := map[string]*cluster.Cluster{}
	for _, target := range []string{"a", "b", "c"} {
		planes[target] = cluster.Start(w.t)
	}
	// Parts wait most of the time: all of them count as one parallel test.
	var running errgroup.Group
	running.SetLimit(6)
	for name, do := range merged(failureParts(), memberParts(), hostileParts()) {
		run := func(t *testing.T) {
			v := convoy{ship: ship{w.in(t, w.name+"-"+name), maps.Clone(planes)}, ways: map[string]*front{}}
			for target, ring := range map[string]string{"a": "0", "b": "1", "c": "1"} {
				v.targets[target] = planes[target].In(t)
				v.targets[target].MustKubectl("create", "namespace", v.name)
				v.ways[target] = v.front(v.targets[target])
				if name != "Joins" || target != "c" {
					v.open(target, ring, v.ways[target].kubeconfig())
				}
			}
			all := v.uses("a", "b", "c", "z")
			v.alice, v.bob = v.person("alice", mayWriteSets+mayCreate+mayDecide+all), v.person("bob", mayWriteSets+mayCreate+mayDecide+all)
			t.Cleanup(func() { v.Kubectl("delete", "--ignore-not-found", "--wait=false", "clusterextensionset", v.name) })
			do(v)
		}
		running.Go(func() error { w.t.Run(name, run); return nil })
	}
	_ = running.Wait()
}

// part is one scenario of several on the same control planes.
type part func(v convoy)

// convoy is a set of alice with the clusters a, in the first wave, b and c. Bob approves its rollouts.
type convoy struct {
	ship
	ways       map[string]*front
	alice, bob person
}

// rolledOut writes a version as alice, approves it, and waits until all clusters that are named have it.
func (v convoy) rolledOut(number int, manifest, want string) {
	v.t.Helper()
	v.apply(v.alice, manifest)
	v.approved(v.bob, number)
	v.ends(number, fleet.Completed, want)
}

// ends waits for the phase of a rollout, and compares its clusters.
func (v convoy) ends(number int, phase fleet.Phase, want string) *olmv1alpha1.ClusterExtensionRollout {
	v.t.Helper()
	r := v.rollout(number, "it becomes "+string(phase), inPhase(phase))
	if got := v.states(r); got != want {
		v.t.Errorf("the clusters are %s, want %s: %s", got, want, r.Status.Message)
	}
	return r
}

// have compares the versions that clusters have, in the order of their names.
func (v convoy) have(want ...string) {
	v.t.Helper()
	for i, target := range []string{"a", "b", "c"} {
		if got := v.has(target); got != want[i] {
			v.t.Errorf("cluster %s has version %q, want %q", target, got, want[i])
		}
	}
}

// place is a cluster in a rollout.
func (v convoy) place(r *olmv1alpha1.ClusterExtensionRollout, target string) olmv1alpha1.RolloutClusterStatus {
	for _, one := range r.Status.Clusters {
		if one.Name == v.secret(target) {
			return one
		}
	}
	return olmv1alpha1.RolloutClusterStatus{}
}

// excepts waits until the set names a cluster that it cannot serve.
func (v convoy) excepts(target, reason string) {
	v.t.Helper()
	v.await(extensionset.Resource, v.name, target+" is excepted: "+reason, func(object *unstructured.Unstructured) (bool, error) {
		if object == nil {
			return false, nil
		}
		set, err := extensionset.From(object)
		if err != nil {
			return false, err
		}
		for _, one := range set.Status.Exceptions {
			if one.Cluster == v.secret(target) && one.Reason == reason {
				return true, nil
			}
		}
		return false, nil
	})
}

// conflicts fails the test unless an error is the refusal of an outdated digest.
func (v convoy) conflicts(what string, err error) {
	v.t.Helper()
	if !apierrors.IsConflict(err) {
		v.t.Errorf("%s: %v", what, err)
	}
}

// front is a server before a kube-apiserver that a test can have misbehave.
type front struct {
	t      *testing.T
	server *httptest.Server
	proxy  http.Handler
	// answers is how it answers now.
	answers atomic.Pointer[http.Handler]
	// requests counts all of them.
	requests atomic.Int64
}

// front makes a server that answers as a control plane does, until a test changes that.
func (s ship) front(of *cluster.Cluster) *front {
	s.t.Helper()
	config := of.User("front-"+s.name, "system:masters").Config()
	transport, err := rest.TransportFor(config)
	if err != nil {
		s.t.Fatal(err)
	}
	host, err := url.Parse(config.Host)
	if err != nil {
		s.t.Fatal(err)
	}
	quiet := log.New(io.Discard, "", 0)
	f := &front{t: s.t, proxy: &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: quiet,
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(host); r.Out.Header.Del("Authorization") },
	}}
	f.server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.requests.Add(1)
		if r.Header.Get("Authorization") != "Bearer "+frontToken {
			http.Error(w, "another token", http.StatusUnauthorized)
			return
		}
		(*f.answers.Load()).ServeHTTP(w, r)
	}))
	f.server.Config.ErrorLog, f.server.EnableHTTP2 = quiet, true
	f.answers.Store(&f.proxy)
	f.server.StartTLS()
	// Penstock comes again for as long as it runs, which is longer than this server.
	s.t.Cleanup(func() { _ = f.server.Config.Close() })
	return f
}

const frontToken = "token-of-the-test"

// kubeconfig leads to the server.
func (f *front) kubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: f.server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: frontToken}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	return config
}

// answer changes how it answers, and ends what it was answering.
func (f *front) answer(as http.Handler) {
	f.answers.Store(&as)
	f.server.CloseClientConnections()
}

// mend has it answer as the control plane does.
func (f *front) mend() { f.answer(f.proxy) }

// hangUp has it end each connection.
func (f *front) hangUp() {
	f.answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
}

// manifest is the set of a version, changed: pairs of text and its replacement.
func (v convoy) manifest(image string, changes ...string) string {
	v.t.Helper()
	text := v.set(image, 1800, 2)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			v.t.Fatalf("no %q in %s", changes[i], text)
		}
		text = strings.ReplaceAll(text, changes[i], changes[i+1])
	}
	return text
}

// children are the clusters that have a ClusterExtension of the set.
func (v convoy) children() string {
	v.t.Helper()
	var list struct{ Items []unstructured.Unstructured }
	if err := json.Unmarshal([]byte(v.MustKubectl("get", "clusterextensions", "-o", "json")), &list); err != nil {
		v.t.Fatal(err)
	}
	var names []string
	for _, one := range list.Items {
		if target, found := strings.CutPrefix(one.GetName(), extensionset.ChildName(v.name, v.secret(""))); found {
			names = append(names, target)
		}
	}
	return strings.Join(names, " ")
}
