package server

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/server/options"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/component-base/compatibility"
	"k8s.io/component-base/featuregate"
	baseversion "k8s.io/component-base/version"

	"github.com/penstock-project/penstock/pkg/admission"
	"github.com/penstock-project/penstock/pkg/admission/webhook/installlevel"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/catalog/inventory"
	"github.com/penstock-project/penstock/pkg/governance/profile"
	"github.com/penstock-project/penstock/pkg/redact"
	"github.com/penstock-project/penstock/pkg/registry/olm/upgradereadiness"
	"github.com/penstock-project/penstock/pkg/server/database"
	"github.com/penstock-project/penstock/pkg/server/initializers"
	"github.com/penstock-project/penstock/pkg/server/leadership"
	"github.com/penstock-project/penstock/pkg/server/registration"
	"github.com/penstock-project/penstock/pkg/server/snapshots"
	"github.com/penstock-project/penstock/pkg/server/storehealth"
)

const (
	// DefaultNamespace is the namespace of this process's objects in the host.
	DefaultNamespace = registration.DefaultNamespace
	defaultPort      = 8443
	minQuota         = "64Mi"

	// maxRequestBody admits a revision of the largest size with the additions of clients. kubectl
	// apply sends the manifests twice, the second time as an escaped string, and YAML is indented.
	maxRequestBody = 4 * v1alpha1.MaxManifestBytes

	// maxPatchCopies bounds the bytes that the copy operations of a JSON patch may add, because an
	// answer may quote them. Labels and annotations are smaller.
	maxPatchCopies = 256 << 10

	// deletionWorkers is the number of revisions that a deletecollection request deletes at the
	// same time. Each deletion is a write and an access review at the host.
	deletionWorkers = 8

	// watchGrace is the time that open watches have to end when the process stops. The server's
	// default is a minute. Watches end at once when their context ends.
	watchGrace = 2 * time.Second
)

// DefaultRegisterHost is the default host name by which the host cluster reaches this process.
const DefaultRegisterHost = "localhost"

// Options are the user's settings for a server.
type Options struct {
	// Kubeconfig is a file for the host cluster. Empty means the cluster in which this process
	// runs.
	Kubeconfig string
	// TargetKubeconfig is a file for the default target cluster of revisions. Empty means the host.
	TargetKubeconfig string
	// ConfirmTargetChange confirms that the objects in the previous target cluster are given up. It
	// is the uid of the new cluster's kube-system namespace, or "host". Other values have no
	// effect.
	ConfirmTargetChange string
	// DataDir is the directory of the embedded etcd. It is empty when Etcd names servers.
	DataDir string
	// DataQuota is the database size at which the embedded etcd takes no more writes.
	DataQuota resource.QuantityValue
	// SnapshotDir is the directory for snapshots of the embedded store. A snapshot is taken every
	// SnapshotInterval, and the newest SnapshotKeep are kept. Empty disables snapshots.
	SnapshotDir      string
	SnapshotInterval time.Duration
	SnapshotKeep     int
	// Namespace is the namespace of this process's objects in the host.
	Namespace string
	// Register makes the host send requests for our API to RegisterHost. The host verifies our
	// certificate with RegisterCAFile if our own authority did not sign it.
	Register       bool
	RegisterHost   string
	RegisterCAFile string
	// RegisterServicePort is the port of an existing Service in front of all replicas. With 0,
	// Penstock creates a Service for RegisterHost.
	RegisterServicePort int
	// AcceptIdentity accepts a store although this cluster knows another store. The message of the
	// refusal contains the value. The value is bound to this store and to the cluster's present
	// record. So it accepts no other store and no later loss.
	AcceptIdentity string
	// Redact lists rules (see redact.ParseRule) for fields whose values are hidden from all users,
	// besides the content of Secrets.
	Redact []string
	// GuardInstallLevels lists resources of the host (see installlevel.ParseResource) whose install
	// levels are checked on write.
	GuardInstallLevels []string

	Recommended *options.RecommendedOptions
	Run         *options.ServerRunOptions

	// Version is the version of this program.
	Version string
	// Controllers run on the leader.
	Controllers []leadership.Controller
	// Companions run beside the API on every replica.
	Companions []Companion
	// Profiles are the profiles of plans.
	Profiles []profile.Profile
	// Catalogs holds the catalogs whose packages are served. Each replica fills it and reports when
	// it is complete; until then requests for packages get a 503. Nil serves no packages.
	Catalogs *inventory.Inventory
	// RenderPackage renders the manifests of a package version, for the plan of an upgrade of the
	// cluster. Nil serves no such plan.
	RenderPackage upgradereadiness.Render
	// Lease holds the times of the leader's lease. Zero uses the times that suit the store.
	Lease leadership.Times
	// Ready, if set, is called when the server is ready and, with Register, registered. It is
	// called again after each restart of the server, see Run.
	Ready func(Serving)
}

// NewOptions returns the default options.
func NewOptions() (*Options, error) {
	_, codecs := newScheme()
	recommended := options.NewRecommendedOptions(database.Prefix, codecs.LegacyCodec(registration.Versions()...))
	recommended.SecureServing.BindPort = defaultPort
	recommended.Etcd.DeleteCollectionWorkers = deletionWorkers
	// These options are replaced: the client of the host has its own options, and only one network
	// leads to the host.
	recommended.CoreAPI = nil
	recommended.EgressSelector = nil
	recommended.ExtraAdmissionInitializers = initializers.Schemas
	admission.Register(recommended.Admission)

	registry, err := newComponentRegistry(utilfeature.DefaultMutableFeatureGate)
	if err != nil {
		return nil, err
	}
	run := options.NewServerRunOptionsForComponent(compatibility.DefaultKubeComponent, registry)
	run.MaxRequestBodyBytes = maxRequestBody
	run.JSONPatchMaxCopyBytes = maxPatchCopies
	run.ShutdownWatchTerminationGracePeriod = watchGrace
	return &Options{
		DataQuota: resource.QuantityValue{Quantity: resource.MustParse(database.DefaultQuota)},
		Namespace: DefaultNamespace,

		SnapshotInterval: snapshots.DefaultInterval,
		SnapshotKeep:     snapshots.DefaultKeep,

		RegisterHost: DefaultRegisterHost,
		Recommended:  recommended,
		Run:          run,
		Version:      "unknown",

		GuardInstallLevels: installlevel.DefaultResources(),
	}, nil
}

// newComponentRegistry returns the versions and feature gates of this server. In the server, gate
// is the library's gate, because the library reads no other.
func newComponentRegistry(gate featuregate.MutableVersionedFeatureGate) (compatibility.ComponentGlobalsRegistry, error) {
	registry := compatibility.NewComponentGlobalsRegistry()
	version := compatibility.NewEffectiveVersionFromString(baseversion.DefaultKubeBinaryVersion, "", "")
	if err := addFeatures(gate); err != nil {
		return nil, err
	}
	if err := registry.Register(compatibility.DefaultKubeComponent, version, gate); err != nil {
		return nil, fmt.Errorf("registering the server's feature gates: %w", err)
	}
	return registry, nil
}

// forRun returns a copy for one run, which fills in values. It also copies the values behind
// pointers that a run changes.
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

func (o *Options) external() bool {
	return o.DataDir == ""
}

func (o *Options) leaseTimes() leadership.Times {
	switch {
	case o.Lease != leadership.Times{}:
		return o.Lease
	case o.external():
		return leadership.ReplicatedTimes()
	default:
		return leadership.SingleTimes()
	}
}

// database returns the configuration of etcd. Open writes the address of the embedded etcd to
// Transport.
func (o *Options) database() database.Config {
	return database.Config{DataDir: o.DataDir, QuotaBytes: storehealth.Reserved(o.DataQuota.Value()), Transport: &o.Recommended.Etcd.StorageConfig.Transport}
}

func (o *Options) ownCertificates() bool {
	files := o.Recommended.SecureServing.ServerCert.CertKey
	return files.CertFile == "" && files.KeyFile == ""
}

// redactor returns the redactor for the rules. Its error names all invalid rules.
func (o *Options) redactor() (*redact.Redactor, error) {
	rules, err := parseEach("--redact", o.Redact, redact.ParseRule)
	if err != nil {
		return nil, err
	}
	return redact.New(rules...)
}

// parseEach parses the values of a flag. Its error lists all invalid values.
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
