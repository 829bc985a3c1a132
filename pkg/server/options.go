package server

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	cliflag "k8s.io/component-base/cli/flag"
	"k8s.io/component-base/compatibility"
	baseversion "k8s.io/component-base/version"

	"github.com/penstock-project/penstock/pkg/admission"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/redact"
)

const (
	defaultNamespace = "penstock-system"
	defaultPort      = 8443
	defaultQuota     = "4Gi"
	minQuota         = "64Mi"

	// maxRequestBody admits a revision of the largest size with all that
	// clients add: kubectl apply sends the manifests twice, the second time as
	// a string with its quotes escaped, and YAML is indented.
	maxRequestBody = 4 * v1alpha1.MaxManifestBytes

	// deletionWorkers is how many revisions a request to delete all of some deletes
	// at a time. Each is a write, and a question to the host about the author's
	// rights.
	deletionWorkers = 8

	// watchGrace is how long open watches may take to end when the process
	// stops. Without it the server waits a minute for them; they end at once
	// when told to.
	watchGrace = 2 * time.Second
)

// Options are what a person says about a server.
type Options struct {
	// Kubeconfig is a file for the host cluster; empty is the cluster that
	// this process runs in.
	Kubeconfig string
	// TargetKubeconfig is a file for the cluster that revisions are rolled out
	// into; empty is the host.
	TargetKubeconfig string
	// AcceptTarget is the decision to give up what was rolled out into another
	// cluster: the uid of kube-system in the one to go to, or "host". Other values
	// decide nothing.
	AcceptTarget string
	// DataDir is the directory of the embedded etcd. Empty when Etcd names
	// servers.
	DataDir string
	// DataQuota is the size of the embedded etcd's database at which it takes
	// no more writes.
	DataQuota resource.QuantityValue
	// SnapshotDir is where snapshots of the embedded store are put every
	// SnapshotInterval, of which the newest SnapshotKeep stay. Empty takes none.
	SnapshotDir      string
	SnapshotInterval time.Duration
	SnapshotKeep     int
	// Namespace in the host for everything that belongs to this process.
	Namespace string
	// Register makes the host send requests for our API here, at
	// RegisterHost, verifying our certificate with RegisterCAFile when it is
	// not our own authority's.
	Register       bool
	RegisterHost   string
	RegisterCAFile string
	// RegisterServicePort is the port of a Service that somebody else makes, and
	// that leads to all replicas. With 0 we make one that leads to RegisterHost.
	RegisterServicePort int
	// AcceptIdentity is the decision to serve a store although it is not the
	// one that this cluster knows. It is the value that the refusal asks for:
	// it stands for this store and what the cluster knows now, so that it
	// accepts neither another store nor the next loss.
	AcceptIdentity string
	// Redact are rules (see redact.ParseRule) of fields whose values are shown to
	// nobody, besides the content of Secrets.
	Redact []string
	// GuardInstallLevels are resources of the host (see installlevel.ParseResource)
	// whose install levels are looked at when they are written; none for none.
	GuardInstallLevels []string

	Recommended *options.RecommendedOptions
	Run         *options.ServerRunOptions

	// Version of this program.
	Version string
	// Controllers run where this replica is the leader.
	Controllers []Controller
	// Profiles are what plans can be made of.
	Profiles []profile.Profile
	// Lease decides which replica that is.
	Lease LeaseTimes
	// Ready, when set, is called when the server is ready, and registered if it
	// is to be; and again when it started over, see Run.
	Ready func(Serving)
}

// NewOptions returns the defaults.
func NewOptions() (*Options, error) {
	_, codecs := newScheme()
	recommended := options.NewRecommendedOptions(storagePrefix, codecs.LegacyCodec(servedVersions()...))
	recommended.SecureServing.BindPort = defaultPort
	recommended.Etcd.DeleteCollectionWorkers = deletionWorkers
	// What these would do is done here: the host's client has its own
	// options, and there is no other network between us and the host.
	recommended.CoreAPI = nil
	recommended.EgressSelector = nil
	recommended.ExtraAdmissionInitializers = admissionInitializers
	admission.Register(recommended.Admission)

	registry, err := newComponentRegistry()
	if err != nil {
		return nil, err
	}
	run := options.NewServerRunOptionsForComponent(compatibility.DefaultKubeComponent, registry)
	run.MaxRequestBodyBytes = maxRequestBody
	run.ShutdownWatchTerminationGracePeriod = watchGrace
	return &Options{
		DataQuota: resource.QuantityValue{Quantity: resource.MustParse(defaultQuota)},
		Namespace: defaultNamespace,

		SnapshotInterval: defaultSnapshotInterval,
		SnapshotKeep:     defaultSnapshotKeep,

		RegisterHost: "localhost",
		Recommended:  recommended,
		Run:          run,
		Version:      "unknown",

		GuardInstallLevels: installlevel.DefaultResources(),
		Lease:              defaultLeaseTimes(),
	}, nil
}

// newComponentRegistry has the versions and feature gates of this server. The
// gate itself is the library's: its code reads no other.
func newComponentRegistry() (compatibility.ComponentGlobalsRegistry, error) {
	registry := compatibility.NewComponentGlobalsRegistry()
	version := compatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")
	if err := registry.Register(compatibility.DefaultKubeComponent, version, utilfeature.DefaultMutableFeatureGate); err != nil {
		return nil, fmt.Errorf("registering the server's feature gates: %w", err)
	}
	return registry, nil
}

// Flags returns the options as flags, our own in the first set.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("penstock")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig file for the host cluster. In a pod it may be left out.")
	fs.StringVar(&o.TargetKubeconfig, "target-kubeconfig", o.TargetKubeconfig,
		"Kubeconfig file for the cluster that all revisions are rolled out into, when it is not the host. It must have everything in itself: no programs, no other files. It is read again when it changes.")
	fs.StringVar(&o.AcceptTarget, "accept-target", o.AcceptTarget,
		"Give up what was rolled out into another cluster than the one to be used now. The value is the one that the refusal ends with, and is good for that cluster only.")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"Directory of the store, created when absent. One process at a time may use it.")
	fs.Var(&o.DataQuota, "data-quota",
		"Size of the store's database at which it takes no more writes.")
	fs.StringVar(&o.SnapshotDir, "snapshot-dir", o.SnapshotDir,
		"Directory for snapshots of the store, created when absent; penstock restore makes a store of one. They hold the Secrets of all revisions. Without it none are taken.")
	fs.DurationVar(&o.SnapshotInterval, "snapshot-interval", o.SnapshotInterval, "How often to take a snapshot, with --snapshot-dir.")
	fs.IntVar(&o.SnapshotKeep, "snapshot-keep", o.SnapshotKeep, "How many snapshots to keep, with --snapshot-dir; older ones are removed.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace in the host cluster for the certificate authority, the store's identity and the lease.")
	fs.BoolVar(&o.Register, "register", o.Register,
		"Make the host cluster send requests for Penstock's API to this process: create the namespace, a Service and the APIService.")
	fs.StringVar(&o.RegisterHost, "register-host", o.RegisterHost,
		"DNS name or IPv4 address at which kube-apiserver reaches this process, with --register.")
	fs.IntVar(&o.RegisterServicePort, "register-service-port", o.RegisterServicePort,
		"Port of a Service \"penstock\" in --namespace that leads to all replicas, with --register: it is used, not written, and --register-host is not needed. 0: a Service is made that leads to --register-host.")
	fs.StringVar(&o.RegisterCAFile, "register-ca-file", o.RegisterCAFile,
		"PEM bundle that verifies --tls-cert-file, with --register. The file is read again when it changes.")
	fs.StringVar(&o.AcceptIdentity, "accept-identity", o.AcceptIdentity,
		"Serve a store although it is not the one that the host cluster knows. The value is the one that the refusal ends with: it is good for this one decision, and for no other store or later loss.")
	fs.StringArrayVar(&o.Redact, "redact", o.Redact,
		"Field whose value appears in no diff, condition, event or log, as is the content of Secrets. May be given several times. "+redact.Grammar+".")
	fs.StringSliceVar(&o.GuardInstallLevels, "guard-install-levels", o.GuardInstallLevels,
		"Resources of the host cluster, as group/resource, whose annotation release.openshift.io/install-level is checked when it is set or changed. Empty for none.")

	etcd := &o.Recommended.Etcd.StorageConfig
	fs = sets.FlagSet("external etcd")
	fs.StringSliceVar(&etcd.Transport.ServerList, "etcd-servers", nil,
		"Servers of an etcd to use instead of --data-dir (scheme://host:port), separated by commas.")
	fs.StringVar(&etcd.Transport.TrustedCAFile, "etcd-cafile", "", "PEM bundle that verifies the etcd servers.")
	fs.StringVar(&etcd.Transport.CertFile, "etcd-certfile", "", "Client certificate for etcd.")
	fs.StringVar(&etcd.Transport.KeyFile, "etcd-keyfile", "", "Key of the client certificate for etcd.")
	fs.DurationVar(&etcd.CompactionInterval, "etcd-compaction-interval", etcd.CompactionInterval,
		"How often to compact etcd; 0 when somebody else does.")

	fs = sets.FlagSet("secure serving")
	o.Recommended.SecureServing.AddFlags(fs)
	fs.Lookup("secure-port").Usage = "The port on which to serve HTTPS; 0 takes any free port."
	fs.Lookup("tls-cert-file").Usage = "Certificate to serve with. Without it one is made, signed by an authority in a Secret, and renewed."
	// There is nothing to put there.
	_ = fs.MarkHidden("cert-dir")

	o.Recommended.Authentication.AddFlags(sets.FlagSet("authentication"))
	o.Recommended.Authorization.AddFlags(sets.FlagSet("authorization"))
	o.Recommended.Admission.AddFlags(sets.FlagSet("admission"))
	o.Recommended.Audit.AddFlags(sets.FlagSet("auditing"))
	o.Recommended.Features.AddFlags(sets.FlagSet("features"))
	o.Recommended.Traces.AddFlags(sets.FlagSet("tracing"))
	o.Run.AddUniversalFlags(sets.FlagSet("generic"))
	return sets
}

// forRun returns a copy for one run, which fills in what it finds out. Of what is
// behind pointers it copies what a run changes.
func (o *Options) forRun() *Options {
	run := *o
	recommended := *o.Recommended
	run.Recommended = &recommended
	recommended.Etcd = copied(recommended.Etcd)
	recommended.SecureServing = copied(recommended.SecureServing)
	recommended.SecureServing.SecureServingOptions = copied(recommended.SecureServing.SecureServingOptions)
	recommended.Authentication = copied(recommended.Authentication)
	recommended.Authorization = copied(recommended.Authorization)
	recommended.Audit = copied(recommended.Audit)
	recommended.Features = copied(recommended.Features)
	recommended.Admission = copied(recommended.Admission)
	recommended.Admission.DisablePlugins = slices.Clone(recommended.Admission.DisablePlugins)
	recommended.Traces = copied(recommended.Traces)
	run.Run = copied(o.Run)
	return &run
}

func copied[T any](original *T) *T {
	if original == nil {
		return nil
	}
	same := *original
	return &same
}

// external tells whether the store is an etcd elsewhere.
func (o *Options) external() bool {
	return o.DataDir == ""
}

// ownCertificates tells whether we make our certificates ourselves.
func (o *Options) ownCertificates() bool {
	files := o.Recommended.SecureServing.ServerCert.CertKey
	return files.CertFile == "" && files.KeyFile == ""
}

// Validate says everything that is wrong with the options.
func (o *Options) Validate() error {
	var errs []error
	switch servers := o.Recommended.Etcd.StorageConfig.Transport.ServerList; {
	case o.DataDir == "" && len(servers) == 0:
		errs = append(errs, errors.New("--data-dir is missing: it is where the store is kept (or name an external etcd with --etcd-servers)"))
	case o.DataDir != "" && len(servers) > 0:
		errs = append(errs, errors.New("--data-dir and --etcd-servers exclude each other: the store is here or there"))
	}
	if quantity := resource.MustParse(minQuota); o.DataQuota.Cmp(quantity) < 0 {
		errs = append(errs, fmt.Errorf("--data-quota is %s, and must be %s or more", o.DataQuota.String(), minQuota))
	}
	errs = append(errs, o.validateSnapshots()...)
	if problems := validation.IsDNS1123Label(o.Namespace); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--namespace %q is not a name of a namespace: %s", o.Namespace, strings.Join(problems, ", ")))
	}
	if port := o.Recommended.SecureServing.BindPort; port < 0 || port > 65535 {
		errs = append(errs, fmt.Errorf("--secure-port is %d, and must be 0 (any free port) to 65535", port))
	}
	if _, err := o.redactor(); err != nil {
		errs = append(errs, err)
	}
	if _, err := o.webhooks(); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.validateRegistration()...)
	errs = append(errs, o.Run.Validate()...)
	errs = append(errs, o.Recommended.Authentication.Validate()...)
	errs = append(errs, o.Recommended.Authorization.Validate()...)
	errs = append(errs, o.Recommended.Audit.Validate()...)
	errs = append(errs, o.Recommended.Features.Validate()...)
	errs = append(errs, o.Recommended.Admission.Validate()...)
	errs = append(errs, o.Recommended.Traces.Validate()...)
	return errors.Join(errs...)
}

// redactor hides what the rules say. All rules that are wrong are named.
func (o *Options) redactor() (*redact.Redactor, error) {
	rules, err := parseEach("--redact", o.Redact, redact.ParseRule)
	if err != nil {
		return nil, err
	}
	return redact.New(rules...)
}

// parseEach parses the values of a flag, and says everything that is wrong with
// them.
func parseEach[T any](flag string, values []string, parse func(string) (T, error)) ([]T, error) {
	var parsed []T
	var errs []error
	for _, text := range values {
		one, err := parse(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
			continue
		}
		parsed = append(parsed, one)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return parsed, nil
}

func (o *Options) validateSnapshots() []error {
	var errs []error
	if o.SnapshotDir != "" && o.external() {
		errs = append(errs, errors.New("--snapshot-dir is for --data-dir: an etcd elsewhere is backed up where it is run"))
	}
	if o.SnapshotInterval < minSnapshotInterval {
		errs = append(errs, fmt.Errorf("--snapshot-interval is %s, and must be %s or more", o.SnapshotInterval, minSnapshotInterval))
	}
	if o.SnapshotKeep < 1 {
		errs = append(errs, fmt.Errorf("--snapshot-keep is %d, and must be 1 or more", o.SnapshotKeep))
	}
	return errs
}

func (o *Options) validateRegistration() []error {
	var errs []error
	files := o.Recommended.SecureServing.ServerCert.CertKey
	if (files.CertFile == "") != (files.KeyFile == "") {
		errs = append(errs, errors.New("--tls-cert-file and --tls-private-key-file belong together: give both or none"))
	}
	if port := o.RegisterServicePort; port < 0 || port > 65535 {
		errs = append(errs, fmt.Errorf("--register-service-port is %d, and must be 0 (make a Service) to 65535", port))
	}
	if o.RegisterServicePort != 0 && !o.Register {
		errs = append(errs, errors.New("--register-service-port is for --register"))
	}
	if o.RegisterCAFile != "" && (o.ownCertificates() || !o.Register) {
		errs = append(errs, errors.New("--register-ca-file is for --register with --tls-cert-file: otherwise there is nothing to verify with it"))
	}
	if !o.Register {
		return errs
	}
	if !o.ownCertificates() && o.RegisterCAFile == "" {
		errs = append(errs, errors.New("--register with --tls-cert-file needs --register-ca-file: kube-apiserver must be able to verify that certificate"))
	}
	if problems := validation.IsDNS1123Subdomain(o.RegisterHost); len(problems) > 0 {
		errs = append(errs, fmt.Errorf("--register-host %q must be a DNS name or an IPv4 address: %s", o.RegisterHost, strings.Join(problems, ", ")))
	}
	return errs
}
