//go:build integration

package server_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/utils/ptr"

	"github.com/penstock-project/penstock/test/framework/cluster"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/pod"
	"github.com/penstock-project/penstock/test/framework/poll"
	"github.com/penstock-project/penstock/test/framework/replicas"
)

// installation is an installation of the chart in a cluster without a kubelet. The test runs the
// program as the Deployment says.
type installation struct {
	*cluster.Cluster
	t       *testing.T
	program *penstock.Program
	dir     string
	// begun counts started Pods.
	begun   int
	running []*penstock.Server
}

// chartsRun installs the chart three times: embedded and then upgraded; three replicas with an
// external etcd and a cert-manager certificate; and one replica with a user's own certificate.
func chartsRun(t *testing.T, c *cluster.Cluster) {
	i := &installation{Cluster: c, t: t, program: penstock.Build(t), dir: filepath.Dir(penstock.DataDir(t))}
	etcd := replicas.StartEtcd(t, c)

	// Another field manager owned the Deployment before.
	i.MustKubectl("delete", "deployment", "penstock", system)
	i.install("v1.0.0", values{})
	i.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	bundle := i.bundle()
	i.halt()
	// After an upgrade of the chart, the values that the process wrote into the chart's objects
	// remain, and so does the store.
	i.MustKubectl("create", "configmap", "signers", system, "--from-literal=team.pub="+publicKey(t),
		"--from-literal=policy.yaml=rules: [{match: registry.example.com/team, anyOf: [{key: team.pub}]}]")
	upgraded := rendered(t, "v1.1.0", values{}.set("monitoring.enabled", true).set("extraArgs", []any{"--v=1"}).set("verificationPolicy.configMapName", "signers"))
	if !strings.Contains(upgraded, "--verification-policy=/etc/penstock/verification/policy.yaml") {
		t.Error("the verification policy is no argument")
	}
	i.apply(upgraded) // the process would exit at its start if it could not read the policy and the key
	i.MustKubectl("wait", "cer/argocd-1", "--for=condition=Ready", poll.TimeoutFlag)
	if i.bundle() != bundle {
		t.Error("an upgrade of the chart created a new certificate authority")
	}
	i.scraped()
	i.MustKubectl("delete", "cer", "argocd-1")
	i.remove()

	external := values{}.set("store.mode", "external").set("store.external.servers", []any{etcd.Server}).
		// No connection needs time to drain here.
		set("extraArgs", []any{"--shutdown-delay-duration=0s"})
	i.secret("penstock-etcd", etcd.Authority, etcd.Certificate, etcd.Key)
	i.secret(newSecret("penstock-serving", t))
	i.install("v1.0.0", external.set("replicas", 3).set("tls.mode", "cert-manager"))
	if n := len(i.running); n != 3 {
		t.Errorf("%d replicas run", n)
	}
	i.MustKubectlInput(revision("argocd", 1), "create", "-f", "-")
	i.MustKubectl("wait", "cer/argocd-1", "--for=condition=Ready", poll.TimeoutFlag)
	i.reviewed()
	i.halt()

	i.secret(newSecret("somebodys", t))
	i.install("v1.0.0", external.set("tls.mode", "secret").set("tls.secretName", "somebodys").set("networkPolicy.enabled", false).set("monitoring.enabled", true))
	i.MustKubectl("get", "cer", "argocd-1")
	i.scraped()
}

// publicKey returns a public key in PEM.
func publicKey(t *testing.T) string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	content, err := x509.MarshalPKIXPublicKey(key.Public())
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: content}))
}

func newSecret(name string, t *testing.T) (string, []byte, []byte, []byte) {
	authority, certificate, key := newPair(t, name)
	return name, authority, certificate, key
}

func (i *installation) secret(name string, authority, certificate, key []byte) {
	i.t.Helper()
	client, err := kubernetes.NewForConfig(i.Config())
	if err != nil {
		i.t.Fatal(err)
	}
	made := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string][]byte{"ca.crt": authority, "tls.crt": certificate, "tls.key": key}}
	if _, err := client.CoreV1().Secrets("penstock-system").Create(i.t.Context(), made, metav1.CreateOptions{}); err != nil {
		i.t.Fatal(err)
	}
}

// install applies the chart as Helm does, runs the requested number of Pods, and returns when the
// host reaches them.
func (i *installation) install(version string, v values) {
	i.t.Helper()
	i.apply(rendered(i.t, version, v))
}

// apply is like install, with rendered manifests.
func (i *installation) apply(manifests string) {
	i.t.Helper()
	out := i.KubectlInput(manifests, "apply", "--server-side", "--field-manager=helm", "--force-conflicts", "--validate=strict", "-f", "-")
	if out.ExitCode != 0 || out.Stderr != "" {
		i.t.Fatal(out)
	}
	var deployment appsv1.Deployment
	decode(i.t, split(i.t, manifests)["Deployment"][0], &deployment)
	for range ptr.Deref(deployment.Spec.Replicas, 1) {
		i.begin(deployment)
	}
	for _, server := range i.running {
		server.Await(i.t, penstock.Served)
	}
	i.MustKubectl("wait", "--for=condition=Available", poll.TimeoutFlag, "apiservice/v1alpha1.olm.operatorframework.io")
	eventually(i.t, "the API", func() error {
		if out := i.Kubectl("get", "cer"); out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
}

// begin runs a Pod of the Deployment.
func (i *installation) begin(deployment appsv1.Deployment) {
	i.t.Helper()
	i.begun++
	made := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("penstock-", i.begun), Namespace: deployment.Namespace, Labels: deployment.Spec.Template.Labels},
		Spec:       deployment.Spec.Template.Spec,
	}
	container, err := pod.Prepare(i.t.Context(), i.Config(), made, pod.Options{Dir: i.dir, Program: i.program.Path()})
	if err != nil {
		i.t.Fatal(err)
	}
	server := penstock.Start(i.t, container.Command())
	if err := pod.Reach(i.t.Context(), i.Config(), made.Namespace, "penstock", made.Name, container); err != nil {
		i.t.Fatal(err)
	}
	i.running = append(i.running, server)
}

// reviewed checks that the webhook of each replica denies a request. Since Kubernetes 1.37
// kube-apiserver spreads webhook calls over the endpoints of the Service. Before, all calls use one
// connection to one replica.
func (i *installation) reviewed() {
	i.t.Helper()
	const gate = `kubernetes_feature_enabled{name="WebhookRoundTripLoadBalancing",stage="BETA"} 1`
	spreads := strings.Contains(i.MustKubectl("get", "--raw", "/metrics"), gate)
	// No controller fills the aggregated ClusterRole edit here.
	i.MustKubectl("create", "clusterrole", "eddie", "--verb=get,delete", "--resource=configmaps")
	i.MustKubectl("create", "clusterrolebinding", "eddie", "--clusterrole=eddie", "--user=eddie")
	i.MustKubectl("label", "namespace", "default", "policy.penstock.dev/protect=true")
	const refused = `admission webhook "governed.penstock.dev" denied the request: deleting ConfigMap default/first is not allowed: extension "argocd"`
	remove := func() string {
		return i.Kubectl("delete", "configmap", "first", "--namespace=default", "--dry-run=server", "--as=eddie").Stderr
	}
	// kube-apiserver learns of the label and the role with a delay.
	eventually(i.t, "the webhook", func() error { return missing(remove(), []string{refused}) })
	eventually(i.t, "reviews of the replicas", func() error {
		if found := remove(); !strings.Contains(found, refused) {
			i.t.Fatalf("one of the replicas answers %s", found)
		}
		asked := 0
		for _, server := range i.running {
			if strings.Contains(server.Fetch(i.t, i.Config(), "/metrics"), `penstock_webhook_reviews_total{decision="denied",webhook="governed"}`) {
				asked++
			}
		}
		if asked == len(i.running) || asked > 0 && !spreads {
			return nil
		}
		return fmt.Errorf("%d of %d replicas were asked", asked, len(i.running))
	})
}

// halt stops the Pods.
func (i *installation) halt() {
	i.t.Helper()
	i.MustKubectl("delete", "endpointslices", "--all", system)
	for _, server := range i.running {
		server.Stop(i.t)
		if log := server.Complaints(); strings.Contains(log, "forbidden") {
			i.t.Errorf("the host refused a request:\n%s", log)
		}
	}
	i.running = nil
}

// remove stops the Pods, and deletes the objects that belong to their store.
func (i *installation) remove() {
	i.t.Helper()
	i.halt()
	i.MustKubectl("delete", "configmap/penstock-store", "secret/penstock-ca", system)
}

// bundle returns the CA bundle that verifies the API.
func (i *installation) bundle() string {
	i.t.Helper()
	return i.MustKubectl("get", "apiservice", apiService, "-o", "jsonpath={.spec.caBundle}")
}
