// Command penstock runs cert-manager's controllers, its webhook or its cainjector, from the packages
// of its module. cert-manager's own commands are modules of their own, which module proxies do not
// serve. The path of this module lets it import the internal packages that they import.
//
//	penstock controller|webhook|cainjector FLAGS
//
// It takes the flags of cert-manager's charts, and uses those that this file names. It has issuers
// of the kinds CA and SelfSigned, and elects no leader.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/spf13/pflag"
	"golang.org/x/sync/errgroup"
	apiextensions "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	apiregistration "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	cmscheme "github.com/cert-manager/cert-manager/pkg/api"
	"github.com/cert-manager/cert-manager/pkg/controller"
	"github.com/cert-manager/cert-manager/pkg/controller/cainjector"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/approver"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/ca"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificaterequests/selfsigned"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/issuing"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/keymanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/readiness"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/requestmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/revisionmanager"
	_ "github.com/cert-manager/cert-manager/pkg/controller/certificates/trigger"
	_ "github.com/cert-manager/cert-manager/pkg/controller/clusterissuers"
	_ "github.com/cert-manager/cert-manager/pkg/controller/issuers"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/ca"
	_ "github.com/cert-manager/cert-manager/pkg/issuer/selfsigned"
	"github.com/cert-manager/cert-manager/pkg/util"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	ctx = logr.NewContext(ctx, klog.Background())
	ctrl.SetLogger(klog.Background())
	flags := pflag.NewFlagSet("penstock", pflag.ExitOnError)
	flags.ParseErrorsWhitelist.UnknownFlags = true
	var w config.WebhookConfiguration
	flags.Int32Var(&w.SecurePort, "secure-port", 10250, "")
	flags.StringVar(&w.TLSConfig.Dynamic.SecretNamespace, "dynamic-serving-ca-secret-namespace", "", "")
	flags.StringVar(&w.TLSConfig.Dynamic.SecretName, "dynamic-serving-ca-secret-name", "", "")
	flags.StringSliceVar(&w.TLSConfig.Dynamic.DNSNames, "dynamic-serving-dns-names", nil, "")
	namespace := flags.String("cluster-resource-namespace", "kube-system", "")
	if len(os.Args) < 2 {
		fail(fmt.Errorf("want controller, webhook or cainjector"))
	}
	_ = flags.Parse(os.Args[2:]) // it ends the program
	var err error
	switch os.Args[1] {
	case "controller":
		err = controllers(ctx, *namespace)
	case "webhook":
		w.HealthzPort, w.MetricsListenAddress = 6080, "0"
		err = serve(ctx, w)
	case "cainjector":
		err = inject(ctx)
	default:
		err = fmt.Errorf("there is no command %q", os.Args[1])
	}
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, "error:", err)
	os.Exit(1)
}

func controllers(ctx context.Context, namespace string) error {
	options := controller.ContextOptions{KubernetesAPIQPS: 100, KubernetesAPIBurst: 100}
	options.ClusterResourceNamespace = namespace
	factory, err := controller.NewContextFactory(ctx, options)
	if err != nil {
		return err
	}
	shared, err := factory.Build()
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	for name, constructor := range controller.Known() {
		one, err := constructor(factory)
		if err != nil {
			return fmt.Errorf("starting %s: %w", name, err)
		}
		group.Go(func() error { return one.Run(2, ctx) })
	}
	shared.SharedInformerFactory.Start(ctx.Done())
	shared.KubeSharedInformerFactory.Start(ctx.Done())
	shared.HTTP01ResourceMetadataInformersFactory.Start(ctx.Done())
	return group.Wait()
}

func serve(ctx context.Context, w config.WebhookConfiguration) error {
	server, err := webhook.NewCertManagerWebhookServer(klog.Background(), w)
	if err != nil {
		return err
	}
	return server.Run(ctx)
}

func inject(ctx context.Context) error {
	known := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{scheme.AddToScheme, cmscheme.AddToScheme, apiextensions.AddToScheme, apiregistration.AddToScheme} {
		if err := add(known); err != nil {
			return err
		}
	}
	manager, err := ctrl.NewManager(util.RestConfigWithUserAgent(ctrl.GetConfigOrDie(), "cainjector"), ctrl.Options{Scheme: known, Metrics: metricsserver.Options{BindAddress: "0"}})
	if err != nil {
		return err
	}
	targets := map[string]bool{"mutatingwebhookconfiguration": true, "validatingwebhookconfiguration": true, "apiservice": true, "customresourcedefinition": true}
	if err := cainjector.RegisterAllInjectors(ctx, manager, cainjector.SetupOptions{EnableCertificatesDataSource: true, EnabledReconcilersFor: targets}); err != nil {
		return err
	}
	return manager.Start(ctx)
}
