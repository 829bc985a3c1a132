package server

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/tools/leaderelection"

	"github.com/penstock-project/penstock/pkg/server/certificates"
	"github.com/penstock-project/penstock/pkg/store/identity"
)

func parsedOptions(t *testing.T, args ...string) *Options {
	t.Helper()
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return o
}

func TestValidate(t *testing.T) {
	cases := map[string]struct {
		reason string
		args   []string
		want   []string
	}{
		"Least": {
			reason: "a data directory is all that is needed",
			args:   []string{"--data-dir=/d"},
		},
		"Nothing": {
			reason: "there must be a store, and both ways to have one are named",
			want:   []string{"--data-dir is missing", "--etcd-servers"},
		},
		"TwoStores": {
			reason: "there can be only one",
			args:   []string{"--data-dir=/d", "--etcd-servers=http://127.0.0.1:2379"},
			want:   []string{"--data-dir and --etcd-servers exclude each other"},
		},
		"TinyQuota": {
			reason: "a store that is full at once is no store",
			args:   []string{"--data-dir=/d", "--data-quota=1Mi"},
			want:   []string{"--data-quota is 1Mi, and must be 64Mi or more"},
		},
		"Redact": {
			reason: "fields that are hidden, with commas and colons in their paths",
			args:   []string{"--data-dir=/d", "--redact=ConfigMap:.data.password", `--redact=Database.example.com:.spec.users[*]["a:b,c"]`},
		},
		"RedactNothing": {
			reason: "who wants something hidden must be told at once that it is not",
			args:   []string{"--data-dir=/d", "--redact=ConfigMap:.data.password", "--redact=configmaps:.data.x", "--redact=Secret.data"},
			want: []string{
				`--redact: "configmaps:.data.x": "configmaps" is no kind`, `--redact: "Secret.data" has no colon`,
				"want <Kind>[.<group>]:<path>, such as 'Database.example.com:.spec.users[*].password'",
			},
		},
		"Port": {
			reason: "ports end somewhere",
			args:   []string{"--data-dir=/d", "--secure-port=65536"},
			want:   []string{"--secure-port is 65536, and must be 0 (any free port) to 65535"},
		},
		"AnyPort": {
			reason: "0 is any free port, and not off",
			args:   []string{"--data-dir=/d", "--secure-port=0", "--register"},
		},
		"Namespace": {
			reason: "it becomes part of a DNS name",
			args:   []string{"--data-dir=/d", "--namespace=Pen Stock"},
			want:   []string{`--namespace "Pen Stock" is not a name of a namespace`},
		},
		"HalfACertificate": {
			reason: "a certificate without its key is of no use",
			args:   []string{"--data-dir=/d", "--tls-cert-file=c"},
			want:   []string{"--tls-cert-file and --tls-private-key-file belong together"},
		},
		"FilesWithoutCA": {
			reason: "skipping verification is not an option, so we must know what to verify with",
			args:   []string{"--data-dir=/d", "--tls-cert-file=c", "--tls-private-key-file=k", "--register"},
			want:   []string{"needs --register-ca-file"},
		},
		"Files": {
			reason: "certificates of somebody else",
			args:   []string{"--data-dir=/d", "--tls-cert-file=c", "--tls-private-key-file=k", "--register", "--register-ca-file=a"},
		},
		"CAForNothing": {
			reason: "a bundle that nobody uses is a misunderstanding",
			args:   []string{"--data-dir=/d", "--register", "--register-ca-file=a"},
			want:   []string{"--register-ca-file is for --register with --tls-cert-file"},
		},
		"Host": {
			reason: "an ExternalName has no port in it",
			args:   []string{"--data-dir=/d", "--register", "--register-host=localhost:8443"},
			want:   []string{`--register-host "localhost:8443" must be a DNS name or an IPv4 address`},
		},
		"Service": {
			reason: "a Service that leads to all replicas",
			args:   []string{"--data-dir=/d", "--register", "--register-service-port=443"},
		},
		"ServicePort": {
			reason: "ports end somewhere, and a Service that nobody registers is a misunderstanding",
			args:   []string{"--data-dir=/d", "--register-service-port=65536"},
			want:   []string{"--register-service-port is 65536, and must be 0 (make a Service) to 65535", "--register-service-port is for --register"},
		},
		"EverythingAtOnce": {
			reason: "all mistakes are named, not the first",
			args:   []string{"--secure-port=-1", "--max-requests-inflight=-1", "--enable-admission-plugins=X"},
			want: []string{"--data-dir is missing", "--secure-port is -1", "--max-requests-inflight can not be negative",
				`enable-admission-plugins plugin "X" is unknown`},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			err := parsedOptions(t, tc.args...).Validate()
			if (err != nil) != (len(tc.want) > 0) {
				t.Fatalf("%s: got error %v, want %q", tc.reason, err, tc.want)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error does not say %q:\n%v", tc.reason, want, err)
				}
			}
		})
	}
}

// TestGatesThatAreGone: gates of Kubernetes 1.36 that 1.37 lacks end the process, as in
// kube-apiserver. The error names the flag and the gate.
func TestGatesThatAreGone(t *testing.T) {
	for gate, gone := range map[string]bool{
		"ConsistentListFromCache": true, "BtreeWatchCache": true, "StreamingCollectionEncodingToJSON": true,
		"WatchListCompression": false, string(BoxcutterRuntime): false,
	} {
		// A gate remembers the values that it refused, so the test uses a copy.
		registry, err := newComponentRegistry(utilfeature.DefaultMutableFeatureGate.DeepCopy())
		if err != nil {
			t.Fatal(err)
		}
		flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
		registry.AddFlags(flags)
		if err := flags.Parse([]string{"--feature-gates=" + gate + "=true"}); err != nil {
			t.Fatal(err)
		}
		o := parsedOptions(t)
		o.Run.ComponentGlobalsRegistry = registry
		err = o.setFeatures()
		if (err != nil) != gone {
			t.Errorf("%s: got error %v, want one %t", gate, err, gone)
		}
		if gone && err != nil && (!strings.Contains(err.Error(), "--feature-gates: ") || !strings.Contains(err.Error(), gate)) {
			t.Errorf("the error names neither the flag nor the gate: %v", err)
		}
	}
}

func TestCertificateNames(t *testing.T) {
	o := parsedOptions(t, "--data-dir=/d", "--namespace=ns", "--register-host=penstock.example", "--external-hostname=10.0.0.7")
	names, ips := certificateNames(o)
	if want := "penstock.ns.svc"; names[0] != want {
		t.Errorf("the first name is %s; kube-apiserver verifies %s", names[0], want)
	}
	for _, want := range []string{"localhost", "penstock.example"} {
		if !strings.Contains(strings.Join(names, " "), want) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
	want := []string{"127.0.0.1", "::1", "10.0.0.7"}
	var got []string
	for _, ip := range ips {
		got = append(got, net.IP.String(ip))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("addresses: -want, +got:\n%s", diff)
	}
}

// TestReplicaIdentity: a server of an embedded store restarts with the same identity. Two replicas
// of an external store have different identities.
func TestReplicaIdentity(t *testing.T) {
	one, two := identity.Identity{ID: "1"}, identity.Identity{ID: "2"}
	embedded := parsedOptions(t, "--data-dir=/d")
	if a, b := replicaIdentity(embedded, one), replicaIdentity(parsedOptions(t, "--data-dir=/e"), one); a != b {
		t.Errorf("the same store: %s and %s", a, b)
	}
	if a, b := replicaIdentity(embedded, one), replicaIdentity(embedded, two); a == b {
		t.Errorf("two stores, one identity: %s", a)
	}
	external := parsedOptions(t, "--etcd-servers=http://127.0.0.1:2379")
	if a, b := replicaIdentity(external, one), replicaIdentity(external, one); a == b {
		t.Errorf("two replicas of an external store, one identity: %s", a)
	}
}

// TestLeaseTimes: lease times bound an idle program's writes to the host, and the time until
// another replica leads.
func TestLeaseTimes(t *testing.T) {
	single := parsedOptions(t, "--data-dir=/d").leaseTimes()
	if perMinute := time.Minute / single.RetryPeriod; perMinute > 6 {
		t.Errorf("%d renewals a minute by a single process", perMinute)
	}
	replicated := parsedOptions(t, "--etcd-servers=http://127.0.0.1:2379").leaseTimes()
	if perMinute := time.Minute / replicated.RetryPeriod; perMinute > 30 {
		t.Errorf("%d renewals a minute with replicas", perMinute)
	}
	// client-go stretches each wait by up to its JitterFactor.
	retry := time.Duration(float64(replicated.RetryPeriod) * (1 + leaderelection.JitterFactor))
	if failover := replicated.Duration + 2*retry; failover > 15*time.Second {
		t.Errorf("another replica leads after %s", failover)
	}
}

// TestRunsShareNothingThatTheyChange: the values that a run fills in do not reach the next run.
func TestRunsShareNothingThatTheyChange(t *testing.T) {
	o, err := NewOptions()
	if err != nil {
		t.Fatal(err)
	}
	o.Recommended.Admission.DisablePlugins = make([]string, 1, 10)
	run := o.forRun()
	run.Recommended.Etcd = nil
	run.Recommended.SecureServing.BindPort = 1
	run.Recommended.SecureServing.ServerCert.GeneratedCert = &certificates.Leaf{}
	run.Recommended.Admission.DisablePlugins = append(run.Recommended.Admission.DisablePlugins, "X")
	run.Recommended.Features.EnablePriorityAndFairness = false
	run.Recommended.Authentication.RemoteKubeConfigFile = "x"
	run.Recommended.Authorization.RemoteKubeConfigFile = "x"
	switch left := o.Recommended; {
	case left.Etcd == nil, left.SecureServing.BindPort == 1, left.SecureServing.ServerCert.GeneratedCert != nil,
		left.Admission.DisablePlugins[:2][1] != "", !left.Features.EnablePriorityAndFairness,
		left.Authentication.RemoteKubeConfigFile != "", left.Authorization.RemoteKubeConfigFile != "":
		t.Errorf("a run changed the options of the next: %+v", left)
	}
}
