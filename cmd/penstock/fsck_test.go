package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/etcd"
	"github.com/penstock-project/penstock/pkg/store"
	"github.com/penstock-project/penstock/pkg/store/identity"
	"github.com/penstock-project/penstock/pkg/store/pack"
	"github.com/penstock-project/penstock/pkg/verbs"
)

// TestFsck: a store is checked while it is served and while it is not. --repair deletes
// unreferenced records, and the exit code gives the result.
func TestFsck(t *testing.T) {
	dir, err := os.MkdirTemp("", "penstock") // a socket's path must be short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	run := func(code int, says string, args ...string) {
		t.Helper()
		var out bytes.Buffer
		command := newFsckCommand()
		command.SetArgs(append([]string{"--data-dir", dir}, args...))
		command.SetOut(&out)
		command.SetErr(&out)
		command.SilenceErrors, command.SilenceUsage = true, true
		err := command.ExecuteContext(t.Context())
		got := 0
		if err != nil {
			got = verbs.ExitStatus(err)
			out.WriteString(err.Error())
		}
		if got != code || !strings.Contains(out.String(), says) {
			t.Errorf("fsck %v: got %d, want %d and %q:\n%s\n%v", args, got, code, says, out.String(), err)
		}
	}
	run(1, "has no store")

	server, err := etcd.Start(t.Context(), etcd.Config{DataDir: dir, QuotaBytes: 64 << 20, Log: logr.Discard(), Fleeting: true})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.Endpoint()}, Logger: zap.NewNop()})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	run(1, "there is no store")
	if _, _, err := identity.NewStore(client, database.Prefix).Create(t.Context(), identity.Identity{ID: "a", Format: 1}); err != nil {
		t.Fatal(err)
	}
	run(0, "the store is sound: 1 record, 0 packs")
	run(1, "an earlier Penstock may be serving it", "--repair")
	if _, err := identity.NewStore(client, database.Prefix).Raise(t.Context()); err != nil {
		t.Fatal(err)
	}
	object, err := manifest.Digester{}.FromJSON([]byte(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`))
	if err != nil {
		t.Fatal(err)
	}
	root, err := pack.New(client, database.Prefix, manifest.Digester{}).Put(t.Context(), []manifest.Object{object})
	if err != nil {
		t.Fatal(err)
	}
	keys := store.NewKeys(database.Prefix)
	run(3, "LeftOver   "+keys.Pack(root))
	run(3, `"kind": "LeftOver"`, "-o", "json")
	run(0, "deleted what was left over: 1 pack", "--repair")
	if _, err := client.Put(t.Context(), keys.Head("argocd"), "PKH"); err != nil {
		t.Fatal(err)
	}
	run(4, "Unreadable   "+keys.Head("argocd"))
	run(4, "EXTENSION", "-o", "wide")
	run(2, "want json or wide", "-o", "yaml")
	run(2, "exactly one of", "--kubeconfig", "admin.kubeconfig")

	_ = client.Close()
	server.Close()
	run(4, "Unreadable   "+keys.Head("argocd"))
}
