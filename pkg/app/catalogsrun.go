package app

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"

	"github.com/penstock-project/penstock/pkg/catalog/clustercatalog"
	"github.com/penstock-project/penstock/pkg/catalog/contentserver"
	"github.com/penstock-project/penstock/pkg/catalog/image"
	"github.com/penstock-project/penstock/pkg/controller/catalog"
	"github.com/penstock-project/penstock/pkg/objectwatch"
	"github.com/penstock-project/penstock/pkg/server/accessreview"
)

type catalogsRun struct {
	catalogs    *Catalogs
	options     catalog.Options
	access      kubernetes.Interface
	dir         string
	listener    net.Listener
	certificate func() (certificate, key []byte)
	// tls is the TLS configuration of the API; the minimum version is 1.2.
	tls *tls.Config

	mu   sync.Mutex
	pair *tls.Certificate
	of   string
}

// run runs catalogs until ctx ends:
//
//  1. It waits for the rights of this process: without the right to watch there are no catalogs.
//  2. It opens the folder on disk, and retries after errors. An unusable disk must not stop the
//     API.
//  3. It runs the controller and the listener.
func (r *catalogsRun) run(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	if r.listener != nil {
		running.Go(func() { r.serve(ctx) })
	}
	if !accessreview.MayWatch(ctx, r.access, clustercatalog.Resource, "", "", "ClusterCatalogs") ||
		!accessreview.MayWatch(ctx, r.access, objectwatch.Definitions, "", clustercatalog.DefinitionName, "ClusterCatalogs") {
		return
	}
	r.options.SeesLeases = accessreview.MayWatch(ctx, r.access, coordinationv1.SchemeGroupVersion.WithResource("leases"), "", clustercatalog.CatalogdLease, "Write ClusterCatalogs: nobody can tell whether OLM's catalogd does")
	folder := r.open(ctx)
	if folder == nil {
		return
	}
	defer func() {
		if err := folder.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "The folder of catalogs could not be closed")
		}
	}()
	r.options.Images, r.options.Indexes, r.options.Contents = folder.Images, folder.Indexes, folder.Contents
	if secrets, ok := r.options.Credentials.(*catalog.PullSecrets); ok {
		secrets.Dir = folder.Private
	}
	controller := catalog.New(r.options)
	r.catalogs.set(controller)
	defer r.catalogs.set(nil)
	controller.Run(ctx)
}

// open opens the folder, and retries until it works. It returns nil when ctx ends.
func (r *catalogsRun) open(ctx context.Context) *catalog.Folder {
	options := image.DefaultOptions()
	options.Registries = r.catalogs.registries()
	for {
		folder, err := catalog.OpenFolder(r.dir, options)
		if err == nil {
			return folder
		}
		klog.FromContext(ctx).Error(err, "Catalogs cannot be kept on disk; trying again", "directory", r.dir, "after", folderRetry)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(folderRetry):
		}
	}
}

func (r *catalogsRun) serve(ctx context.Context) {
	config := r.tls.Clone()
	config.GetCertificate = func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return r.shown() }
	handler := contentserver.NewHandler(func(name string) *contentserver.Served {
		if controller := r.catalogs.present(); controller != nil {
			return controller.Served(name)
		}
		return nil
	})
	if err := contentserver.Serve(ctx, r.listener, config, handler, contentserver.DefaultLimits()); err != nil {
		klog.FromContext(ctx).Error(err, "The content of catalogs is not served any more")
	}
}

// shown returns the certificate of the API. It parses the certificate again only after a change.
func (r *catalogsRun) shown() (*tls.Certificate, error) {
	certificate, key := r.certificate()
	if len(certificate) == 0 {
		return nil, errors.New("there is no certificate yet")
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pair != nil && r.of == string(certificate) {
		return r.pair, nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, err
	}
	r.pair, r.of = &pair, string(certificate)
	return r.pair, nil
}

var _ prometheus.Collector = &catalogsRun{}

// Describe implements prometheus.Collector.
func (r *catalogsRun) Describe(out chan<- *prometheus.Desc) { (&catalog.Controller{}).Describe(out) }

// Collect implements prometheus.Collector.
func (r *catalogsRun) Collect(out chan<- prometheus.Metric) {
	if controller := r.catalogs.present(); controller != nil {
		controller.Collect(out)
	}
}
