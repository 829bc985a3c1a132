package replicas

import (
	"os"
	"testing"

	"github.com/penstock-project/penstock/test/framework/cluster"
)

// Etcd is a single external etcd, for tests that need no etcd cluster: its address and a client's
// credentials, in PEM.
type Etcd struct {
	Server                      string
	Authority, Certificate, Key []byte
}

// StartEtcd runs an etcd beside a control plane until the test ends.
func StartEtcd(t testing.TB, c *cluster.Cluster) Etcd {
	t.Helper()
	m := startMembers(t, c, 1)[0]
	made := Etcd{Server: "https://" + m.client}
	for file, into := range map[string]*[]byte{m.caFile: &made.Authority, m.cert: &made.Certificate, m.keys: &made.Key} {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatalf("replicas: %v", err)
		}
		*into = content
	}
	return made
}
