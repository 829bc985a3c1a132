package server

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/penstock-project/penstock/pkg/server/snapshots"
)

// Validate returns all errors in the options.
func (o *Options) Validate() error {
	var errs []error
	switch servers := o.Recommended.Etcd.StorageConfig.Transport.ServerList; {
	case o.DataDir == "" && len(servers) == 0:
		errs = append(errs, errors.New("--data-dir is missing: it is where the store is kept (or name an external etcd with --etcd-servers)"))
	case o.DataDir != "" && len(servers) > 0:
		errs = append(errs, errors.New("--data-dir and --etcd-servers exclude each other: the store is either embedded or external"))
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
	if _, err := o.Webhooks(nil, nil, nil); err != nil {
		errs = append(errs, err)
	}
	errs = append(errs, o.validateRegistration()...)
	errs = append(errs, o.Run.Validate()...)
	errs = append(errs, o.Recommended.Authentication.Validate()...)
	errs = append(errs, o.Recommended.Authorization.Validate()...)
	errs = append(errs, o.Recommended.Audit.Validate()...)
	errs = append(errs, o.Recommended.Features.Validate()...)
	errs = append(errs, o.Recommended.Admission.Validate()...)
	errs = append(errs, o.validateWebhookFiles()...)
	errs = append(errs, o.Recommended.Traces.Validate()...)
	return errors.Join(errs...)
}

func (o *Options) validateSnapshots() []error {
	var errs []error
	if o.SnapshotDir != "" && o.external() {
		errs = append(errs, errors.New("--snapshot-dir needs --data-dir: back up an external etcd where it runs"))
	}
	if o.SnapshotInterval < snapshots.MinInterval {
		errs = append(errs, fmt.Errorf("--snapshot-interval is %s, and must be %s or more", o.SnapshotInterval, snapshots.MinInterval))
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
