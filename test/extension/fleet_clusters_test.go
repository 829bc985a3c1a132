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

// clusters runs scenarios concurrently on three control planes. Each scenario has its own set,
// namespaces and proxies to the control planes, which it can disturb.
func clusters(w shared) {
	planes := map[string]*cluster.Cluster{}
	for _, target := range []string{"a", "b", "c"} {
		planes[target] = cluster.Start(w.t)
	}
	// The parts mostly wait, so all of them together count as one parallel test.
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

// part is one of several scenarios on the same control planes.
type part func(v convoy)

// convoy is a set that alice wrote. Cluster a is in the first wave, b and c are in the second. Bob
// approves the rollouts.
type convoy struct {
	ship
	ways       map[string]*front
	alice, bob person
}

// rolledOut applies a manifest as alice, approves the rollout as bob, and waits until it is
// complete. It compares the states of the clusters with want.
func (v convoy) rolledOut(number int, manifest, want string) {
	v.t.Helper()
	v.apply(v.alice, manifest)
	v.approved(v.bob, number)
	v.ends(number, fleet.Completed, want)
}

// ends waits for the phase of a rollout, and compares the states of its clusters.
func (v convoy) ends(number int, phase fleet.Phase, want string) *olmv1alpha1.ClusterExtensionRollout {
	v.t.Helper()
	r := v.rollout(number, "it becomes "+string(phase), inPhase(phase))
	if got := v.states(r); got != want {
		v.t.Errorf("the clusters are %s, want %s: %s", got, want, r.Status.Message)
	}
	return r
}

// have compares the versions in clusters a, b and c.
func (v convoy) have(want ...string) {
	v.t.Helper()
	for i, target := range []string{"a", "b", "c"} {
		if got := v.has(target); got != want[i] {
			v.t.Errorf("cluster %s has version %q, want %q", target, got, want[i])
		}
	}
}

// place returns the status of a cluster in a rollout.
func (v convoy) place(r *olmv1alpha1.ClusterExtensionRollout, target string) olmv1alpha1.RolloutClusterStatus {
	for _, one := range r.Status.Clusters {
		if one.Name == v.secret(target) {
			return one
		}
	}
	return olmv1alpha1.RolloutClusterStatus{}
}

// excepts waits until the set's status lists an exception for a cluster.
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

// conflicts fails unless err is a conflict, which refuses an outdated digest.
func (v convoy) conflicts(what string, err error) {
	v.t.Helper()
	if !apierrors.IsConflict(err) {
		v.t.Errorf("%s: %v", what, err)
	}
}

// front is a proxy to a kube-apiserver. A test can make it misbehave.
type front struct {
	t      *testing.T
	server *httptest.Server
	proxy  http.Handler
	// answers is the current handler.
	answers atomic.Pointer[http.Handler]
	// requests counts all requests.
	requests atomic.Int64
}

// front starts a proxy to a control plane.
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
	// Penstock outlives this server and retries its requests. Close does not wait for them.
	s.t.Cleanup(func() { _ = f.server.Config.Close() })
	return f
}

const frontToken = "token-of-the-test"

// kubeconfig returns a kubeconfig for the proxy.
func (f *front) kubeconfig() *clientcmdapi.Config {
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: f.server.URL, CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: f.server.Certificate().Raw})}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: frontToken}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	return config
}

// answer changes the handler, and ends the requests in progress.
func (f *front) answer(as http.Handler) {
	f.answers.Store(&as)
	f.server.CloseClientConnections()
}

// mend restores the proxy.
func (f *front) mend() { f.answer(f.proxy) }

// hangUp makes the server close each connection.
func (f *front) hangUp() {
	f.answer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
}

// manifest returns the manifest of the set with replacements: pairs of old and new text.
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

// children lists the clusters that have a ClusterExtension of the set.
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
