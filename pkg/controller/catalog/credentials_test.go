package catalog

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	testclock "k8s.io/utils/clock/testing"

	"github.com/penstock-project/penstock/pkg/catalog/image"
)

func pullSecret(namespace, name, key, content string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: map[string][]byte{key: []byte(content)}}
}

// TestPullSecrets: the last credentials for a registry win, in the order file, ServiceAccount,
// global Secret.
func TestPullSecrets(t *testing.T) {
	file := filepath.Join(t.TempDir(), "auth.json")
	if err := os.WriteFile(file, []byte(`{"auths":{"a":{"auth":"file"},"b":{"auth":"file"},"c":{"auth":"file"}},"credHelpers":{"a":"evil"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	client := fake.NewClientset(
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "penstock"}, ImagePullSecrets: []corev1.LocalObjectReference{{Name: "one"}, {Name: "old"}, {Name: "gone"}, {Name: "broken"}}},
		pullSecret("ns", "one", corev1.DockerConfigJsonKey, `{"auths":{"b":{"auth":"one"},"c":{"auth":"one"}}}`),
		pullSecret("ns", "old", corev1.DockerConfigKey, `{"d":{"auth":"old"}}`),
		pullSecret("ns", "broken", corev1.DockerConfigJsonKey, `hunter2`),
		pullSecret("other", "all", corev1.DockerConfigJsonKey, `{"auths":{"c":{"auth":"all"}}}`),
	)
	secrets := &PullSecrets{Client: client, Path: file, Dir: t.TempDir(),
		ServiceAccount: types.NamespacedName{Namespace: "ns", Name: "penstock"}, Global: types.NamespacedName{Namespace: "other", Name: "all"}}
	path, done, err := secrets.File(t.Context())
	if err == nil || !strings.Contains(err.Error(), "ns/gone") || !strings.Contains(err.Error(), "ns/broken") || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v, want one that names both Secrets, and not what is in them", err)
	}
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]map[string]map[string]string{}
	if err := json.Unmarshal(content, &got); err != nil {
		t.Fatal(err)
	}
	want := map[string]map[string]map[string]string{"auths": {"a": {"auth": "file"}, "b": {"auth": "one"}, "c": {"auth": "all"}, "d": {"auth": "old"}}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file has mode %v (%v)", info.Mode(), err)
	}
	done()
	if _, err := os.Stat(path); !os.IsNotExist(err) {
		t.Errorf("the file is left: %v", err)
	}
}

// TestPullSecretsTogether: concurrent pulls read the credentials once.
func TestPullSecretsTogether(t *testing.T) {
	client, clock := fake.NewClientset(), testclock.NewFakeClock(time.Date(2026, 11, 23, 8, 0, 0, 0, time.UTC))
	secrets := &PullSecrets{Client: client, Dir: t.TempDir(), ServiceAccount: types.NamespacedName{Namespace: "ns", Name: "penstock"}, Clock: clock}
	asks := func(reason string, want int) {
		t.Helper()
		_, done, err := secrets.File(t.Context())
		done()
		if got := len(client.Actions()); got != want || (err != nil) != (secrets.Global.Name != "") {
			t.Errorf("%s: %d requests and error %v, want %d", reason, got, err, want)
		}
	}
	asks("the first", 1)
	asks("one at the same time", 1)
	clock.Step(knownFor)
	asks("a later one", 2)
	clock.Step(knownFor)
	secrets.Global = types.NamespacedName{Namespace: "ns", Name: "gone"}
	asks("one that fails", 4)
	asks("what failed is read again", 6)
}

// TestNoPullSecrets: without credentials there is no file.
func TestNoPullSecrets(t *testing.T) {
	secrets := &PullSecrets{Client: fake.NewClientset(), Dir: t.TempDir(), ServiceAccount: types.NamespacedName{Namespace: "ns", Name: "penstock"}}
	path, done, err := secrets.File(t.Context())
	defer done()
	if path != "" || err != nil {
		t.Errorf("the file is %q: %v", path, err)
	}
}

// TestFolder: a process gets its earlier place again, and never a place of another process.
func TestFolder(t *testing.T) {
	root := t.TempDir()
	first, err := OpenFolder(root, image.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	second, err := OpenFolder(root, image.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if first.Private == second.Private {
		t.Fatal("two processes have one place")
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenFolder(root, image.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer again.Close()
	if again.Private != first.Private {
		t.Errorf("after a restart the place is %s, and was %s", again.Private, first.Private)
	}
}
