package server

import (
	cliflag "k8s.io/component-base/cli/flag"

	"github.com/penstock-project/penstock/pkg/redact"
)

// Flags returns the options as flags. The first set has Penstock's own flags.
func (o *Options) Flags() cliflag.NamedFlagSets {
	var sets cliflag.NamedFlagSets
	fs := sets.FlagSet("penstock")
	fs.StringVar(&o.Kubeconfig, "kubeconfig", o.Kubeconfig,
		"Kubeconfig file for the host cluster. Without it $KUBECONFIG, then, in a pod, the cluster of the pod.")
	fs.StringVar(&o.TargetKubeconfig, "target-kubeconfig", o.TargetKubeconfig,
		"Kubeconfig file for the cluster that all revisions are rolled out into, when it is not the host. It must be complete in itself: no programs, no other files. It is read again when it changes.")
	fs.StringVar(&o.ConfirmTargetChange, "confirm-target-change", o.ConfirmTargetChange,
		"Give up the objects that were rolled out into another cluster than the present one. Use the value at the end of the error message; it is valid for that cluster only.")
	fs.StringVar(&o.DataDir, "data-dir", o.DataDir,
		"Directory of the store, created when absent. One process at a time may use it.")
	fs.Var(&o.DataQuota, "data-quota",
		"Size of the store's database at which it accepts no more writes.")
	fs.StringVar(&o.SnapshotDir, "snapshot-dir", o.SnapshotDir,
		"Directory for snapshots of the store, created when absent; penstock restore creates a store from one. They hold the Secrets of all revisions. Without this flag no snapshots are taken.")
	fs.DurationVar(&o.SnapshotInterval, "snapshot-interval", o.SnapshotInterval, "How often to take a snapshot, with --snapshot-dir.")
	fs.IntVar(&o.SnapshotKeep, "snapshot-keep", o.SnapshotKeep, "How many snapshots to keep, with --snapshot-dir; older ones are removed.")
	fs.StringVar(&o.Namespace, "namespace", o.Namespace,
		"Namespace in the host cluster for the certificate authority, the store's identity and the lease.")
	fs.BoolVar(&o.Register, "register", o.Register,
		"Make the host cluster send requests for Penstock's API to this process: create the namespace, a Service and the APIService.")
	fs.StringVar(&o.RegisterHost, "register-host", o.RegisterHost,
		"DNS name or IPv4 address at which kube-apiserver reaches this process, with --register.")
	fs.IntVar(&o.RegisterServicePort, "register-service-port", o.RegisterServicePort,
		"Port of a Service \"penstock\" in --namespace that leads to all replicas, with --register. Penstock uses it and does not write it, and --register-host is not needed. 0: Penstock creates a Service that leads to --register-host.")
	fs.StringVar(&o.RegisterCAFile, "register-ca-file", o.RegisterCAFile,
		"PEM bundle that verifies --tls-cert-file, with --register. The file is read again when it changes.")
	fs.StringVar(&o.AcceptIdentity, "accept-identity", o.AcceptIdentity,
		"Serve a store although it is not the one that the host cluster knows. Use the value at the end of the error message; it is valid for this one decision, and for no other store or later loss.")
	fs.StringArrayVar(&o.Redact, "redact", o.Redact,
		"Field whose value appears in no diff, condition, event or log, like the content of Secrets. May be given several times. "+redact.Grammar+".")
	fs.StringSliceVar(&o.GuardInstallLevels, "guard-install-levels", o.GuardInstallLevels,
		"Resources of the host cluster, as group/resource, whose annotation release.openshift.io/install-level is checked when it is set or changed. Empty means none.")

	etcd := &o.Recommended.Etcd.StorageConfig
	fs = sets.FlagSet("external etcd")
	fs.StringSliceVar(&etcd.Transport.ServerList, "etcd-servers", nil,
		"Servers of an etcd to use instead of --data-dir (scheme://host:port), separated by commas.")
	fs.StringVar(&etcd.Transport.TrustedCAFile, "etcd-cafile", "", "PEM bundle that verifies the etcd servers.")
	fs.StringVar(&etcd.Transport.CertFile, "etcd-certfile", "", "Client certificate for etcd.")
	fs.StringVar(&etcd.Transport.KeyFile, "etcd-keyfile", "", "Key of the client certificate for etcd.")
	fs.DurationVar(&etcd.CompactionInterval, "etcd-compaction-interval", etcd.CompactionInterval,
		"How often to compact etcd; 0 when something else compacts it.")

	fs = sets.FlagSet("secure serving")
	o.Recommended.SecureServing.AddFlags(fs)
	fs.Lookup("secure-port").Usage = "The port on which to serve HTTPS; 0 takes any free port."
	fs.Lookup("tls-cert-file").Usage = "Certificate to serve with. Without it one is made, signed by an authority in a Secret, and renewed."
	// This process writes nothing to that directory.
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
