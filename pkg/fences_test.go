// Package fences has tests of the whole source tree. Imports point one way, so that a library stays
// a library. Names use the words of the glossary. Pages name tests, packages and pages that exist.
// docs/adr and the package comments give the reasons.
package fences

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/penstock-project/penstock/"

// fence lists the packages of this module that a folder's packages may import, besides the folder
// itself.
type fence struct {
	folder string
	may    []string
	reason string
}

// fences lists folders, deepest first: the first folder that contains a package decides.
func fences() []fence {
	engine := []string{"pkg/manifest", "pkg/rollout"}
	api := []string{"pkg/apis", "pkg/generated"}
	library := append(append([]string{"pkg/applycheck", "pkg/objectwatch", "pkg/revision", "pkg/planwork", "pkg/records", "pkg/authz", "pkg/metrics", "pkg/store", "pkg/source", "pkg/diff", "pkg/note", "pkg/redact", "pkg/governance", "pkg/signer", "pkg/window"}, engine...), api...)
	return []fence{
		{"pkg/text", nil, "everybody needs it"},
		{"pkg/clusterversion", nil, "a version is compared the same way no matter who asks"},
		{"pkg/lifecycle", []string{"pkg/clusterversion"}, "when Kubernetes removes a kind is the same no matter who asks"},
		{"pkg/readiness", []string{"pkg/apis/olm", "pkg/catalog/fbc", "pkg/catalog/graph", "pkg/clusterversion", "pkg/lifecycle", "pkg/manifest", "pkg/resolve"}, "what an upgrade breaks follows from manifests, statements and a table, without a cluster"},
		{"pkg/authz", nil, "a question about rights is the same for every caller and every user"},
		{"pkg/objectwatch", nil, "an object is watched whatever it is"},
		{"pkg/metrics", nil, "who reads the list of metrics need not know who measures"},
		{"pkg/manifest", nil, "everybody needs it"},
		{"pkg/note", nil, "the reasons of notes are the same no matter who writes and reads them"},
		{"pkg/redact", []string{"pkg/manifest"}, "a caller that prints needs it"},
		{"pkg/window", nil, "when something may begin does not depend on what"},
		{"pkg/fleet", []string{"pkg/window"}, "which cluster begins follows from what is approved and observed: it is pure"},
		{"pkg/extensionset", []string{"pkg/definition", "pkg/extension", "pkg/fleet", "pkg/window"}, "a set says what it asks for without a cluster"},
		{"pkg/extensionrollout", []string{"pkg/apis/olm", "pkg/fleet"}, "a record is read as a plan the same way no matter who reads it"},
		{"pkg/maintenancewindow", []string{"pkg/definition", "pkg/window"}, "windows and labels in, a decision out: it is pure"},
		{"pkg/metriccheck", []string{"pkg/apis/olm/v1alpha1", "pkg/definition", "pkg/outbound"}, "answers in, a verdict out"},
		{"pkg/operatorcondition", []string{"pkg/manifest", "pkg/text"}, "an object in, an answer out: it is pure"},
		{"pkg/apis", []string{"pkg/manifest", "pkg/window"}, "clients of others import the types; validation needs the rules of manifests"},
		{"pkg/generated", []string{"pkg/apis", "pkg/manifest"}, "it is made of the types"},
		{"pkg/applycheck", []string{"pkg/diff/schema", "pkg/manifest"}, "what server-side apply takes is told without a cluster"},
		{"pkg/source/chart/template", nil, "the process that renders a chart knows nothing of what becomes of it"},
		{"pkg/source/bundle/config", nil, "what may be configured is checked without a bundle"},
		{"pkg/source/packed", []string{"pkg/catalog/image", "pkg/source"}, "what an image has becomes manifests by the renderers of folders"},
		{"pkg/capabilities", []string{"pkg/source"}, "what a cluster serves is the same no matter who asks"},
		{"pkg/source", []string{"pkg/applycheck", "pkg/manifest"}, "files in, objects out: also where there is no cluster"},
		{"pkg/diff/printable", nil, "text is text, whatever it says"},
		{"pkg/diff/schema", []string{"pkg/manifest"}, "what is known of types does not depend on what is compared"},
		{"pkg/diff/tree", []string{"pkg/diff/printable", "pkg/diff/schema", "pkg/manifest", "pkg/redact"}, "a difference does not depend on how it is shown"},
		{"pkg/diff/render", []string{"pkg/diff/printable", "pkg/diff/tree", "pkg/redact"}, "how a difference is shown does not depend on what it means"},
		{"pkg/diff/words", nil, "the same is said in the same words, no matter who finds it"},
		{"pkg/diff/review", []string{"pkg/diff/printable", "pkg/diff/schema", "pkg/diff/tree", "pkg/diff/words", "pkg/manifest", "pkg/note"}, "what a difference means does not depend on how it is shown"},
		{"pkg/diff", []string{"pkg/manifest", "pkg/note", "pkg/redact"}, "it is pure"},
		{"pkg/store", []string{"pkg/manifest"}, "what is stored does not depend on what is done with it"},
		{"pkg/rollout/probe", nil, "verdicts are functions of one object"},
		{"pkg/rollout/cause/gather", []string{"pkg/manifest", "pkg/rollout/cause"}, "what is read for a cause does not depend on who asks"},
		{"pkg/rollout/cause", []string{"pkg/manifest"}, "objects in, cause out: without a cluster"},
		{"pkg/rollout/definition", nil, "a definition is judged without a cluster"},
		{"pkg/rollout/budget", []string{"pkg/manifest"}, "what may be lost follows from what is listed"},
		{"pkg/rollout/stage", []string{"pkg/manifest", "pkg/rollout/probe"}, "compiling is pure"},
		{"pkg/rollout/targetclient", []string{"pkg/manifest", "pkg/redact"}, "the client sends what others decide"},
		{"pkg/rollout/managedfields", []string{"pkg/manifest"}, "who has which fields is read without a cluster, and without a rollout"},
		{"pkg/rollout/preview", []string{"pkg/manifest", "pkg/rollout"}, "it asks what the engine would do, and the engine does not know it"},
		{"pkg/rollout/kubeconfig", nil, "a way into a cluster, no matter who takes it"},
		{"pkg/rollout/observe", []string{"pkg/manifest", "pkg/rollout/probe"}, "what is known does not depend on what is wanted of it"},
		{"pkg/rollout", []string{"pkg/manifest", "pkg/redact"}, "the engine is a library: it knows neither our API nor our store nor our clients"},
		{"pkg/revision", []string{"pkg/apis", "pkg/diff", "pkg/manifest", "pkg/rollout", "pkg/store"}, "what a revision means is the same for every caller"},
		{"pkg/records", []string{"pkg/apis", "pkg/manifest", "pkg/revision", "pkg/store"}, "what a record refers to is told without a server"},
		{"pkg/planwork", []string{"pkg/apis/hco", "pkg/manifest", "pkg/authz", "pkg/rollout"}, "what an item means for the engine is the same for every caller"},
		{"pkg/governance", []string{"pkg/apis", "pkg/manifest", "pkg/authz", "pkg/rollout/stage", "pkg/rollout/probe", "pkg/redact", "pkg/window"}, "plans are pure"},
		{"pkg/target", []string{"pkg/apis", "pkg/objectwatch", "pkg/rollout"}, "clusters have engines; which chain needs which, others know"},
		{"pkg/admission/request", []string{"pkg/apis", "pkg/manifest", "pkg/authz"}, "what endpoints tell plugins is no business of either alone"},
		{"pkg/signer", nil, "who signed is recorded whatever verifies signatures"},
		{"pkg/sigstore", nil, "a signature is verified whatever is signed"},
		{"pkg/verification", []string{"pkg/sigstore"}, "who must have signed does not depend on where an image is"},
		{"pkg/release", []string{"pkg/sigstore"}, "the files of a release are verified without a cluster"},
		{"pkg/fairshare", nil, "sharing knows nothing of what is shared"},
		{"pkg/requestbody", []string{"pkg/fairshare"}, "a body is read whatever is in it"},
		{"pkg/admission", append([]string{"pkg/chartkind", "pkg/extension", "pkg/extensionset", "pkg/fairshare", "pkg/imagetemplate", "pkg/maintenancewindow", "pkg/requestbody"}, library...), "it runs inside the server, which is not its business"},
		{"pkg/registry/catalog", []string{"pkg/apis", "pkg/catalog", "pkg/clusterversion", "pkg/extension", "pkg/registry/encoding", "pkg/registry/printing", "pkg/resolve", "pkg/authz"}, "packages are computed from catalogs: of the store it knows what others tell it"},
		{"pkg/registry", append([]string{"pkg/admission/request", "pkg/chartkind", "pkg/clusterversion", "pkg/extension", "pkg/extensionrollout", "pkg/fleet", "pkg/lifecycle", "pkg/readiness", "pkg/fairshare", "pkg/requestbody"}, library...), "it joins the API, the store and the engine"},
		{"pkg/controller/catalog", []string{"pkg/catalog", "pkg/metrics", "pkg/objectwatch"}, "catalogs need neither the store nor the engine"},
		{"pkg/controller/rendering", []string{"pkg/fairshare"}, "what is rendered, and for whom, others know"},
		{"pkg/controller/maker", []string{"pkg/apis/olm", "pkg/controller/bychain", "pkg/note", "pkg/authz", "pkg/source", "pkg/store/chain"}, "revisions are made the same way whatever asks for them"},
		{"pkg/controller/chartkind", append([]string{"pkg/catalog/image", "pkg/chartkind", "pkg/controller/bychain", "pkg/controller/maker", "pkg/controller/rendering", "pkg/extension/author"}, library...), "it joins charts, custom resources and the API of revisions"},
		{"pkg/controller/extension", append([]string{"pkg/catalog", "pkg/clusterversion", "pkg/controller/maker", "pkg/controller/bychain", "pkg/controller/rendering", "pkg/crdsafety", "pkg/extension", "pkg/maintenancewindow", "pkg/operatorcondition", "pkg/resolve"}, library...), "it joins catalogs, the judges and the API of revisions"},
		{"pkg/controller/fleet", append([]string{"pkg/catalog/inventory", "pkg/controller/extension", "pkg/controller/maker", "pkg/extension", "pkg/extensionrollout", "pkg/extensionset", "pkg/fleet", "pkg/maintenancewindow", "pkg/target", "pkg/text"}, library...), "it joins sets, rollouts and the extensions of clusters"},
		{"pkg/controller/maintenancewindow", []string{"pkg/controller/maker", "pkg/maintenancewindow", "pkg/objectwatch", "pkg/text"}, "windows are followed whatever waits for them"},
		{"pkg/controller/imagetemplate", []string{"pkg/extension", "pkg/imagetemplate", "pkg/metrics", "pkg/objectwatch", "pkg/authz"}, "images follow templates without the store and the engine"},
		{"pkg/controller/notify", append([]string{"pkg/notify", "pkg/outbound"}, library...), "it joins what status says, the store and receivers"},
		{"pkg/controller/metriccheck", []string{"pkg/apis/olm/v1alpha1", "pkg/metriccheck", "pkg/metrics", "pkg/objectwatch", "pkg/outbound", "pkg/text"}, "metric services are asked whatever waits for the answer"},
		{"pkg/controller", append([]string{"pkg/metriccheck", "pkg/target"}, library...), "it joins the API, the store and the engine"},
		{"pkg/server/accessreview", []string{"pkg/authz"}, "it asks one question"},
		{"pkg/server/managedobject", nil, "who makes such objects, and who restores them, need not know each other"},
		{"pkg/server/serviceaccounts", []string{"pkg/authz", "pkg/server/accessreview", "pkg/server/managedobject"}, "identities of jobs do not depend on who serves"},
		{"pkg/server/certificates", []string{"pkg/objectwatch"}, "certificates are made for every server"},
		{"pkg/server/registration", []string{"pkg/apis", "pkg/catalog/clustercatalog", "pkg/chartkind", "pkg/definition", "pkg/extension", "pkg/extensionset", "pkg/maintenancewindow", "pkg/metriccheck", "pkg/admission/webhook", "pkg/objectwatch", "pkg/authz", "pkg/server/accessreview", "pkg/server/managedobject", "pkg/server/certificates", "pkg/server/serviceaccounts"},
			"what the host knows of us does not depend on what we serve"},
		{"pkg/server/filters", []string{"pkg/apis/olm/v1alpha1"}, "what is done with any request needs to know no resource"},
		{"pkg/server/etcd", nil, "it runs etcd, and does not know what is in it"},
		{"pkg/server/storehealth/volume", nil, "a volume is a volume"},
		{"pkg/server/storehealth", []string{"pkg/admission/request", "pkg/apis/olm", "pkg/manifest", "pkg/store", "pkg/server/filters"}, "whether a store takes writes does not depend on what is served of it"},
		{"pkg/server/storeguard", []string{"pkg/apis/olm", "pkg/store", "pkg/server/etcd", "pkg/server/filters", "pkg/server/managedobject"}, "whether a store is ours does not depend on what is served of it"},
		{"pkg/server/host", []string{"pkg/admission/plugin/privilege", "pkg/authz", "pkg/server/accessreview"}, "the host is the host, whatever is served"},
		{"pkg/server/memory", nil, "memory is given back whatever it was for"},
		{"pkg/server/snapshots", nil, "it copies a store, and does not know what is in it"},
		{"pkg/server/database", []string{"pkg/apis/olm/v1alpha1", "pkg/manifest", "pkg/records", "pkg/store", "pkg/server/etcd", "pkg/server/memory", "pkg/server/storeguard"}, "where the store is does not depend on what is served of it"},
		{"pkg/server/storemove", []string{"pkg/server/database", "pkg/server/managedobject", "pkg/server/registration", "pkg/server/storeguard", "pkg/store/identity"}, "a store is moved whatever is in it"},
		{"pkg/server/leadership", []string{"pkg/apis/olm/v1alpha1", "pkg/redact", "pkg/target", "pkg/server/database"}, "it runs controllers, and knows none"},
		{"pkg/server/metrics", []string{"pkg/metrics", "pkg/server/etcd"}, "what is told of the process does not depend on what it serves"},
		{"pkg/server/targetcluster", []string{"pkg/apis/olm/v1alpha1", "pkg/rollout/kubeconfig", "pkg/store/chain", "pkg/target", "pkg/server/serviceaccounts"}, "the way to a cluster does not depend on what is asked there"},
		{"pkg/server/clusterreads", append([]string{"pkg/admission/plugin/privilege", "pkg/clusterversion", "pkg/readiness", "pkg/registry", "pkg/target", "pkg/server/host", "pkg/server/serviceaccounts", "pkg/server/targetcluster"}, library...), "endpoints read by it, and it knows none of the server around them"},
		{"pkg/server/initializers", []string{"pkg/admission", "pkg/server/host"}, "plugins are given clients, and no server"},
		{"pkg/server/deployment", []string{"pkg/admission/webhook", "pkg/apis/olm", "pkg/catalog/clustercatalog", "pkg/chartkind", "pkg/extension", "pkg/extensionset", "pkg/maintenancewindow", "pkg/metriccheck", "pkg/imagetemplate", "pkg/server/certificates", "pkg/server/host", "pkg/server/leadership", "pkg/server/crdconflict", "pkg/server/registration", "pkg/server/serviceaccounts", "pkg/server/storeguard"}, "it writes down what others ask for"},
		{"pkg/server", append([]string{"pkg/admission", "pkg/catalog/inventory", "pkg/readiness", "pkg/clusterversion", "pkg/chartkind", "pkg/extension", "pkg/imagetemplate", "pkg/registry", "pkg/requestbody", "pkg/target"}, library...), "it puts the API together, and knows no controller"},
		{"pkg/app", []string{"pkg"}, "it puts the controllers together"},
		{"pkg/catalog/fbc", nil, "a catalog is read the same way whatever is done with it"},
		{"pkg/chartkind/mapping", []string{"pkg/chartkind", "pkg/rollout/probe/expression"}, "values follow from a custom resource, without a cluster"},
		{"pkg/chartkind", []string{"pkg/definition", "pkg/extension", "pkg/note"}, "what a kind is made of does not depend on what is done with it"},
		{"pkg/definition", nil, "a definition is installed whatever it defines"},
		{"pkg/catalog/clustercatalog", []string{"pkg/definition"}, "what an object says does not depend on what is done with it"},
		{"pkg/catalog/digestfolder", nil, "a folder is kept by digest whatever is in it"},
		{"pkg/catalog/content", []string{"pkg/catalog/digestfolder", "pkg/catalog/fbc"}, "what is served of a catalog does not depend on where it comes from"},
		{"pkg/catalog/contentserver", []string{"pkg/catalog/content"}, "every client is answered the same way"},
		{"pkg/catalog/graph", []string{"pkg/catalog/fbc"}, "what a catalog says of upgrades does not depend on what somebody asks for"},
		{"pkg/catalog/image", []string{"pkg/fairshare", "pkg/signer", "pkg/sigstore"}, "an image is pulled and unpacked the same way whatever is in it"},
		{"pkg/catalog/index", []string{"pkg/catalog/digestfolder", "pkg/catalog/fbc", "pkg/catalog/graph"}, "what is kept of a catalog does not depend on where it comes from"},
		{"pkg/catalog/inventory", []string{"pkg/catalog/fbc", "pkg/catalog/graph", "pkg/catalog/index", "pkg/resolve"}, "which catalogs there are does not depend on who fetches them, and who asks"},
		{"pkg/catalog/lint", []string{"pkg/catalog/fbc", "pkg/catalog/graph"}, "a catalog is checked without a cluster"},
		{"pkg/catalog/compare", []string{"pkg/catalog/fbc", "pkg/catalog/graph", "pkg/resolve"}, "for whom something changes, the resolver says"},
		{"pkg/extension/status", []string{"pkg/apis/olm", "pkg/extension", "pkg/resolve"}, "what status says follows from what is known, without a cluster"},
		{"pkg/extension/helmapplier", []string{"pkg/apis/olm/v1alpha1", "pkg/objectwatch", "pkg/source/helm"}, "Helm applies what it is given: who may have it, others judge"},
		{"pkg/extension/upgrades", []string{"pkg/catalog/fbc", "pkg/clusterversion", "pkg/extension", "pkg/resolve"}, "what there is follows from catalogs and a request, without a cluster"},
		{"pkg/extension/order", []string{"pkg/extension", "pkg/manifest", "pkg/resolve", "pkg/source"}, "the order follows from extensions, without a cluster"},
		{"pkg/extension/values", []string{"pkg/manifest", "pkg/redact"}, "values are merged and hidden, whatever asks for it"},
		{"pkg/extension/patch", []string{"pkg/manifest"}, "a patch changes a manifest, whatever asks for it"},
		{"pkg/outbound", nil, "where Penstock connects does not depend on why"},
		{"pkg/notify", []string{"pkg/apis", "pkg/extension", "pkg/outbound"}, "what is told follows from what status says, and is sent without a cluster"},
		{"pkg/extension", []string{"pkg/apis/olm/v1alpha1", "pkg/definition", "pkg/manifest", "pkg/note"}, "what somebody asks for does not depend on what is done with it"},
		{"pkg/resolve", []string{"pkg/catalog/fbc", "pkg/catalog/graph", "pkg/clusterversion"}, "catalogs and a request in, a bundle and the reason out: without a cluster, and without an API"},
		{"pkg/adopt", append([]string{"pkg/client", "pkg/diff", "pkg/extension", "pkg/manifest", "pkg/revision", "pkg/rollout", "pkg/source", "pkg/store/archive"}, api...), "it works from outside, in the name of its caller: it has what is read and compared, and no server"},
		{"pkg/imagetemplate/annotated", []string{"pkg/extension", "pkg/imagetemplate"}, "which objects have templates does not depend on who follows them"},
		{"pkg/imagetemplate/lookup", []string{"pkg/imagetemplate", "pkg/authz"}, "a variable is looked up the same way no matter who asks"},
		{"pkg/imagetemplate", nil, "text and values in, a reference out: it is pure"},
		{"pkg/crdsafety", []string{"pkg/diff/words"}, "two definitions in, what is not safe out"},
		{"pkg/client/install", append([]string{"pkg/extension"}, api...), "what is written to install a package is the same no matter who asks"},
		{"pkg/client/overview", append([]string{"pkg/extension"}, api...), "how an extension is, its ClusterExtension says too"},
		{"pkg/client/upgrades", append([]string{"pkg/extension", "pkg/maintenancewindow"}, api...), "windows and the labels of extensions are in the host"},
		{"pkg/client/check", append([]string{"pkg/client", "pkg/manifest", "pkg/rollout/cause", "pkg/sigstore"}, api...), "why Penstock's own Pod is not ready is told as it is of others"},
		{"pkg/client", api, "a user who talks to our API needs only its types"},
		{"pkg/console/web", nil, "files are served whatever they show"},
		{"pkg/console/screens", append([]string{"pkg/catalog/clustercatalog", "pkg/client", "pkg/extension", "pkg/extensionset", "pkg/fleet", "pkg/text"}, api...), "a screen shows what our API answers, no matter who serves it"},
		{"pkg/console", nil, "the door decides who may ask, and not what is answered"},
		{"pkg/verbs", append([]string{"pkg/adopt", "pkg/catalog", "pkg/capabilities", "pkg/client", "pkg/clusterversion", "pkg/extension", "pkg/manifest", "pkg/plugin/screen", "pkg/resolve", "pkg/server/registration", "pkg/source"}, api...), "they work from outside, in the name of their caller"},
		{"pkg/plugin", append([]string{"pkg/client", "pkg/console", "pkg/extension", "pkg/maintenancewindow", "pkg/release", "pkg/sigstore", "pkg/source", "pkg/verbs"}, api...), "it is for a laptop: what it knows, it asks our API"},
		{"cmd/kubectl-penstock", []string{"pkg/plugin", "pkg/source/chart/template"}, "it is for a laptop: without the server"},
		{"cmd", []string{"pkg"}, "so does the program"},
	}
}

func TestFences(t *testing.T) {
	checked := map[string]int{}
	for pkg, imports := range packages(t) {
		rule, found := ruleOf(pkg)
		if !found {
			t.Errorf("%s is behind no fence: give its folder a row in fences()", pkg)
			continue
		}
		checked[rule.folder]++
		for _, imported := range imports {
			if !in(rule.folder, imported) && imported != "pkg/text" && !slices.ContainsFunc(rule.may, func(folder string) bool { return in(folder, imported) }) {
				t.Errorf("%s imports %s; %s may import %s (%s)", pkg, imported, rule.folder, describe(rule.may), rule.reason)
			}
		}
	}
	// A renamed folder must be renamed in fences, or the test checks nothing.
	for _, folder := range []string{"pkg/manifest", "pkg/rollout", "pkg/rollout/targetclient", "pkg/store", "pkg/registry", "pkg/controller", "cmd"} {
		if checked[folder] == 0 {
			t.Errorf("there is no package in %s any more", folder)
		}
	}
}

// TestPlugin: the plugin runs on users' machines. It contains neither the packages that serve and
// store nor the libraries of kubectl. That halves its size.
func TestPlugin(t *testing.T) {
	for _, pkg := range dependencies(t, "./cmd/kubectl-penstock") {
		for _, library := range []string{"k8s.io/apiserver/pkg/registry", "k8s.io/apiserver/pkg/storage", "k8s.io/apiserver/pkg/cel", "k8s.io/cli-runtime", "k8s.io/kubectl", "go.etcd.io", "google.golang.org/grpc", "sigs.k8s.io/controller-runtime/pkg/manager"} {
			if in(library, pkg) {
				t.Errorf("the plugin has %s in it", pkg)
			}
		}
	}
}

// TestServer: the server loads no Go plugins. If it could, the linker would keep every exported
// method: 37 MB more. kustomize, which Helm's client imports, loads plugins unless a build tag
// disables that.
func TestServer(t *testing.T) {
	tags, err := os.ReadFile("../hack/tags")
	if err != nil {
		t.Fatal(err)
	}
	if slices.Contains(dependencies(t, "-tags="+strings.TrimSpace(string(tags)), "./cmd/penstock"), "plugin") {
		t.Error("the server can load plugins: see go list -deps ./cmd/penstock")
	}
}

// dependencies returns the packages of a program. args are arguments of go list.
func dependencies(t *testing.T, args ...string) []string {
	t.Helper()
	// go test caches a result while the files that the test itself has opened are unchanged. Other
	// tests here open the sources.
	for _, file := range []string{"../go.mod", "../go.sum"} {
		if _, err := os.Stat(file); err != nil {
			t.Fatal(err)
		}
	}
	list := exec.Command("go", append([]string{"list", "-deps"}, args...)...)
	list.Dir = ".."
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("listing the packages of %s: %v\n%s", args[len(args)-1], err, out)
	}
	return strings.Fields(string(out))
}

// informerMakers lists the folders that create informers themselves, with the reasons.
func informerMakers() map[string]string {
	return map[string]string{
		"pkg/objectwatch":       "it makes them for all others",
		"pkg/generated":         "it is made by a generator",
		"pkg/server/leadership": "the cache of controller-runtime has it make them",
	}
}

// TestInformers: only pkg/objectwatch creates informers. So each informer declares its kept fields
// and its handling of failures.
func TestInformers(t *testing.T) {
	makers := informerMakers()
	found := map[string]bool{}
	sources(t, func(file string, source []byte) {
		for _, at := range informersIn(t, file, source) {
			maker := ""
			for folder := range makers {
				if in(folder, path.Dir(file)) {
					maker = folder
				}
			}
			found[maker] = true
			if maker == "" {
				t.Errorf("%s: an informer is made by hand: use objectwatch.New, or objectwatch.NewInformer", at)
			}
		}
	})
	// A folder that does not create informers any more needs no exception.
	for folder, reason := range makers {
		if !found[folder] {
			t.Errorf("%s makes no informer any more (%s)", folder, reason)
		}
	}
}

// informersIn returns the positions at which a file creates an informer or passes on a function
// that creates one.
func informersIn(t *testing.T, file string, source []byte) []token.Position {
	t.Helper()
	return positions(t, file, source, func(node ast.Node) []ast.Node {
		selected, ok := node.(*ast.SelectorExpr)
		if ok && (selected.Sel.Name == "NewSharedInformer" || strings.HasPrefix(selected.Sel.Name, "NewSharedIndexInformer")) {
			return []ast.Node{selected}
		}
		return nil
	})
}

func TestInformersIn(t *testing.T) {
	finds(t, informersIn, map[string]int{
		"package p; var i = cache.NewSharedIndexInformer(from, example, 0, nil)":                  1,
		"package p; var i = toolscache.NewSharedIndexInformerWithOptions(from, example, options)": 1,
		"package p; var i = cache.NewSharedInformer(from, example, 0)":                            1,
		"package p; var o = options{NewInformer: cache.NewSharedIndexInformer}":                   1,
		"package p; var f = informers.NewSharedInformerFactory(client, 0)":                        0,
		"package p; var i cache.SharedIndexInformer":                                              0,
	})
}

// finds compares the number of positions that a search finds in each source with the expected
// number.
func finds(t *testing.T, search func(*testing.T, string, []byte) []token.Position, cases map[string]int) {
	t.Helper()
	for source, want := range cases {
		if got := len(search(t, "p.go", []byte(source))); got != want {
			t.Errorf("%s: %d, want %d", source, got, want)
		}
	}
}

func TestRuleOf(t *testing.T) {
	for pkg, want := range map[string]string{
		"pkg/rollout": "pkg/rollout", "pkg/rollout/targetclient": "pkg/rollout/targetclient", "pkg/rollout/other": "pkg/rollout",
		"pkg/rolloutplan": "", "cmd/penstock": "cmd",
	} {
		if rule, _ := ruleOf(pkg); rule.folder != want {
			t.Errorf("%s is behind the fence of %q, want %q", pkg, rule.folder, want)
		}
	}
}

func ruleOf(pkg string) (fence, bool) {
	for _, f := range fences() {
		if in(f.folder, pkg) {
			return f, true
		}
	}
	return fence{}, false
}

func in(folder, pkg string) bool { return pkg == folder || strings.HasPrefix(pkg, folder+"/") }

func describe(folders []string) string {
	if len(folders) == 0 {
		return "nothing of ours"
	}
	return strings.Join(folders, ", ")
}

// packages returns each package of this module with its imports from this module.
func packages(t *testing.T) map[string][]string {
	t.Helper()
	found := map[string][]string{}
	sources(t, func(file string, source []byte) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, source, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		pkg := path.Dir(file)
		if _, known := found[pkg]; !known {
			found[pkg] = nil
		}
		for _, spec := range parsed.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			if own, ok := strings.CutPrefix(imported, module); ok {
				found[pkg] = append(found[pkg], own)
			}
		}
	})
	return found
}

// sources calls visit for each file of our code, except tests and test packages, which may import
// and create anything.
func sources(t *testing.T, visit func(file string, source []byte)) {
	t.Helper()
	root := os.DirFS("..")
	for _, top := range []string{"pkg", "cmd"} {
		err := fs.WalkDir(root, top, func(file string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && (entry.Name() == "testdata" || strings.HasSuffix(entry.Name(), "test")):
				return fs.SkipDir
			case entry.IsDir() || path.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
				return nil
			}
			source, err := fs.ReadFile(root, file)
			if err != nil {
				return err
			}
			visit(file, source)
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// positions parses a file, and calls sought for each node of the syntax tree. It returns the
// positions of the nodes that sought returns.
func positions(t *testing.T, file string, source []byte, sought func(ast.Node) []ast.Node) []token.Position {
	t.Helper()
	files := token.NewFileSet()
	parsed, err := parser.ParseFile(files, file, source, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	var found []token.Position
	ast.Inspect(parsed, func(node ast.Node) bool {
		for _, one := range sought(node) {
			found = append(found, files.Position(one.Pos()))
		}
		return true
	})
	return found
}
