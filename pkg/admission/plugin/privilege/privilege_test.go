package privilege

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-base/metrics"
	"k8s.io/component-base/metrics/testutil"

	"github.com/penstock-project/penstock/pkg/admission/request"
	"github.com/penstock-project/penstock/pkg/manifest"
)

const forbidden, invalid, unavailable = http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusServiceUnavailable

func TestCreate(t *testing.T) {
	web, config := deployment(t, "web"), configMap(t, "config", "1")
	write := rule("create,patch", "apps", "deployments")
	cases := map[string]struct {
		reason    string
		situation func(*situation)
		objects   []manifest.Object
		code      int32
		says      []string
	}{
		"Nothing": {
			reason: "the right to create revisions is none to what is in them", objects: []manifest.Object{web},
			situation: func(*situation) {}, code: forbidden,
			says: []string{`clusterextensionrevisions.olm.operatorframework.io "lighthouse-1" is forbidden`, "alice cannot create,patch deployments.apps lighthouse/web"},
		},
		"Enough": {
			reason: "create and patch in the namespace", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", write) },
		},
		"Everywhere": {
			reason: "create and patch in all namespaces", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("", write) },
		},
		"OtherNamespace": {
			reason: "the namespace counts", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("other", write) }, code: forbidden,
		},
		"ByName": {
			reason: "a right on one object is one on it", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments", "web")) },
		},
		"OtherName": {
			reason: "and on no other", objects: []manifest.Object{web, deployment(t, "api")},
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments", "web")) },
			code:      forbidden, says: []string{"lighthouse/api", "!lighthouse/web"},
		},
		"NoPatch": {
			reason: "adopting what exists is a patch: who may only create cannot", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", rule("create", "apps", "deployments")) },
			code:      forbidden, says: []string{"cannot patch deployments.apps lighthouse/web"},
		},
		"Subresource": {
			reason: "a right on a subresource is none on the object", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "apps", "deployments/scale")) }, code: forbidden,
		},
		"ClusterScoped": {
			reason: "an object without a namespace needs a right without one", objects: []manifest.Object{object(t, "v1", "Namespace", "", "lighthouse", nil)},
			situation: func(w *situation) { w.may("lighthouse", rule("*", "*", "*")) },
			code:      forbidden, says: []string{"create,patch namespaces lighthouse"},
		},
		"UnknownKind": {
			reason:    "of a kind that nobody knows only who has all of the group has it",
			objects:   []manifest.Object{object(t, "example.com/v1", "Widget", "lighthouse", "w", nil)},
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "example.com", "widgets")) },
			code:      forbidden, says: []string{"create,patch *.example.com lighthouse/w"},
		},
		"UnknownKindAll": {
			reason:    "which can be granted",
			objects:   []manifest.Object{object(t, "example.com/v1", "Widget", "lighthouse", "w", nil)},
			situation: func(w *situation) { w.may("lighthouse", rule("create,patch", "example.com", "*")) },
		},
		"OtherVersion": {
			reason: "rights know no versions: what goes may have been written in one that is not served any more", objects: []manifest.Object{web},
			situation: func(w *situation) {
				w.crds["example.com/v1"] = []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}
				w.may("lighthouse", write, rule("delete", "example.com", "widgets")).has(1, object(t, "example.com/v1alpha1", "Widget", "lighthouse", "w", nil))
			},
		},
		"OtherVersionNotAllowed": {
			reason: "which is asked for all the same", objects: []manifest.Object{web},
			situation: func(w *situation) {
				w.crds["example.com/v1"] = []metav1.APIResource{{Name: "widgets", Kind: "Widget", Namespaced: true}}
				w.may("lighthouse", write).has(1, object(t, "example.com/v1alpha1", "Widget", "lighthouse", "w", nil))
			},
			code: forbidden, says: []string{"cannot delete widgets.example.com lighthouse/w"},
		},
		"BroughtKind": {
			reason:  "the definition in the same revision says what the resource is",
			objects: []manifest.Object{definition(t, "widgets.example.com", "widgets", "Widget"), object(t, "example.com/v1", "Widget", "lighthouse", "w", nil)},
			situation: func(w *situation) {
				w.may("", rule("create,patch", "apiextensions.k8s.io", "customresourcedefinitions")).may("lighthouse", rule("create,patch", "example.com", "widgets"))
			},
		},
		"BroughtLie": {
			reason:  "a definition that no cluster would take says nothing",
			objects: []manifest.Object{definition(t, "others.example.com", "widgets", "Widget"), object(t, "example.com/v1", "Widget", "lighthouse", "w", nil)},
			situation: func(w *situation) {
				w.may("", rule("create,patch", "apiextensions.k8s.io", "customresourcedefinitions")).may("lighthouse", rule("create,patch", "example.com", "widgets"))
			},
			code: forbidden, says: []string{"*.example.com lighthouse/w"},
		},
		"BroughtOverKnown": {
			reason:    "a definition of the revision does not rename what the cluster has",
			objects:   []manifest.Object{definition(t, "harmless.apps", "harmless", "Deployment"), web},
			situation: func(w *situation) { w.may("", rule("*", "apiextensions.k8s.io", "*"), rule("*", "apps", "harmless")) },
			code:      forbidden, says: []string{"deployments.apps lighthouse/web"},
		},
		"Prune": {
			reason: "what the new revision lacks is deleted, which takes the right to", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", write).has(1, config) },
			code:      forbidden, says: []string{"cannot delete configmaps lighthouse/config"},
		},
		"PruneAllowed": {
			reason: "the right to delete is enough", objects: []manifest.Object{web},
			situation: func(w *situation) {
				w.may("lighthouse", write, rule("delete", "", "configmaps", "config")).has(1, config)
			},
		},
		"Ten": {
			reason:    "ten are named, the rest is not asked about",
			objects:   manyConfigMaps(t, 14),
			situation: func(*situation) {}, code: forbidden,
			says: []string{"lighthouse/c00", "lighthouse/c09", "!lighthouse/c10", "; and more"},
		},
		"Bypass": {
			reason: "the right to bypass is enough", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("", rule("bypass", "policy.penstock.dev", "privilegechecks")) },
		},
		"BypassOne": {
			reason: "and can be had for one extension", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("", rule("bypass", "policy.penstock.dev", "privilegechecks", "lighthouse")) },
		},
		"BypassOther": {
			reason: "which is not this one", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("", rule("bypass", "policy.penstock.dev", "privilegechecks", "argocd")) }, code: forbidden,
		},
		"BypassInNamespace": {
			reason: "a right in a namespace is not meant", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("lighthouse", rule("bypass", "policy.penstock.dev", "privilegechecks")) }, code: forbidden,
		},
		"Wildcard": {
			reason: "a wildcard of other groups grants no bypass: everything is asked", objects: []manifest.Object{clusterRole(t, "r", rule("get", "apps", "deployments"))},
			situation: func(w *situation) { w.may("", rule("*", "olm.operatorframework.io", "*"), rule("create", "*", "*")) }, code: forbidden,
		},
		"ClusterAdmin": {
			reason: "* on *.* is everything, bypass included", objects: []manifest.Object{web},
			situation: func(w *situation) { w.may("", rule("*", "*", "*")) },
		},
		"SigningRequest": {
			reason:    "the cluster would believe that Penstock asks",
			objects:   []manifest.Object{object(t, "certificates.k8s.io/v1", "CertificateSigningRequest", "", "node", nil)},
			situation: func(w *situation) { w.may("", rule("*", "certificates.k8s.io", "*")) },
			code:      forbidden, says: []string{"CertificateSigningRequest.certificates.k8s.io node", "Penstock"},
		},
		"Nested": {
			reason:    "a revision in a revision would be asked for by Penstock, which may do everything",
			objects:   []manifest.Object{object(t, "olm.operatorframework.io/v1alpha1", "ClusterExtensionRevision", "", "evil-1", nil)},
			situation: func(w *situation) { w.may("", rule("*", "olm.operatorframework.io", "*")) },
			code:      forbidden, says: []string{"evil-1"},
		},
		"Extension": {
			reason:    "Penstock would be its author, and may install everything",
			objects:   []manifest.Object{object(t, "olm.operatorframework.io/v1", "ClusterExtension", "", "evil", nil)},
			situation: func(w *situation) { w.may("", rule("*", "olm.operatorframework.io", "*")) },
			code:      forbidden, says: []string{"ClusterExtension.olm.operatorframework.io evil"},
		},
		"ProfileDefinition": {
			reason:    "Penstock would be its author, and has every right that it declares",
			objects:   []manifest.Object{object(t, "hco.kubevirt.io/v1alpha1", "ConfigurationProfileDefinition", "", "evil", nil)},
			situation: func(w *situation) { w.may("", rule("*", "hco.kubevirt.io", "*")) },
			code:      forbidden, says: []string{"ConfigurationProfileDefinition.hco.kubevirt.io evil"},
		},
		"TrustBundle": {
			reason:    "the cluster asks who attests for a signer",
			objects:   []manifest.Object{object(t, "certificates.k8s.io/v1beta1", "ClusterTrustBundle", "", "example.com:s:b", fields{"spec": fields{"signerName": "example.com/s"}})},
			situation: func(w *situation) { w.may("", rule("create,patch", "certificates.k8s.io", "clustertrustbundles")) },
			code:      forbidden, says: []string{"attest signers.certificates.k8s.io example.com/s"},
		},
		"TrustBundleThatIsThere": {
			reason:    "the manifest needs not repeat whose it is",
			objects:   []manifest.Object{object(t, "certificates.k8s.io/v1beta1", "ClusterTrustBundle", "", "example.com:s:b", nil)},
			situation: func(w *situation) { w.may("", rule("create,patch", "certificates.k8s.io", "clustertrustbundles")) },
			code:      forbidden, says: []string{"attest signers.certificates.k8s.io"},
		},
		"TrustBundleOfNobody": {
			reason:    "without a signer nobody attests",
			objects:   []manifest.Object{object(t, "certificates.k8s.io/v1beta1", "ClusterTrustBundle", "", "b", nil)},
			situation: func(w *situation) { w.may("", rule("create,patch", "certificates.k8s.io", "clustertrustbundles")) },
		},
		"OpenShiftBinding": {
			reason:    "OpenShift makes a RoleBinding of it with the rights of who writes",
			objects:   []manifest.Object{object(t, "authorization.openshift.io/v1", "RoleBinding", "lighthouse", "b", fields{"roleRef": fields{"name": "cluster-admin"}})},
			situation: func(w *situation) { w.may("", rule("*", "authorization.openshift.io", "*")) },
			code:      forbidden, says: []string{"RoleBinding.authorization.openshift.io lighthouse/b"},
		},
		"TemplateInstance": {
			reason:    "its controller acts with the rights of its author",
			objects:   []manifest.Object{object(t, "template.openshift.io/v1", "TemplateInstance", "lighthouse", "t", nil)},
			situation: func(w *situation) { w.may("", rule("*", "template.openshift.io", "*")) },
			code:      forbidden, says: []string{"TemplateInstance.template.openshift.io lighthouse/t"},
		},
		"CustomBuild": {
			reason:    "a build by the custom strategy is privileged: OpenShift asks its author for the right to the strategy",
			objects:   []manifest.Object{object(t, "build.openshift.io/v1", "BuildConfig", "lighthouse", "b", fields{"spec": fields{"strategy": fields{"customStrategy": fields{}}}})},
			situation: mayBuild, code: forbidden,
			says: []string{"create builds/custom.build.openshift.io lighthouse/b", "!docker"},
		},
		"DockerBuild": {
			reason: "who may build that way",
			objects: []manifest.Object{object(t, "build.openshift.io/v1", "BuildConfig", "lighthouse", "b",
				fields{"spec": fields{"strategy": fields{"type": "Docker", "dockerStrategy": fields{}}}})},
			situation: mayBuild,
		},
		"OptimizedBuild": {
			reason: "is another strategy",
			objects: []manifest.Object{object(t, "build.openshift.io/v1", "BuildConfig", "lighthouse", "b",
				fields{"spec": fields{"strategy": fields{"dockerStrategy": fields{"imageOptimizationPolicy": "SkipLayers"}}}})},
			situation: mayBuild, code: forbidden, says: []string{"create builds/optimizeddocker.build.openshift.io lighthouse/b"},
		},
		"BuildThatIsThere": {
			reason:    "the manifest needs not repeat by which strategy it builds",
			objects:   []manifest.Object{object(t, "build.openshift.io/v1", "BuildConfig", "lighthouse", "b", nil)},
			situation: mayBuild, code: forbidden,
			says: []string{"create builds/custom.build.openshift.io lighthouse/b", "create builds/source.build.openshift.io lighthouse/b"},
		},
		"ImagesOfOthers": {
			reason:    "OpenShift asks who tags images of another namespace whether they may pull them",
			objects:   []manifest.Object{imageStream(t, "secrets", "ImageStreamTag", "app:latest")},
			situation: mayTag, code: forbidden, says: []string{"get imagestreams/layers.image.openshift.io secrets/app"},
		},
		"ImageTagOfOthers": {
			reason: "also when they write the tag alone",
			objects: []manifest.Object{object(t, "image.openshift.io/v1", "ImageStreamTag", "lighthouse", "i:t",
				fields{"tag": fields{"from": fields{"kind": "ImageStreamImage", "namespace": "secrets", "name": "app@sha256:0"}}})},
			situation: mayTag, code: forbidden, says: []string{"get imagestreams/layers.image.openshift.io secrets/app"},
		},
		"OwnImages": {
			reason:    "nobody is asked for their own",
			objects:   []manifest.Object{imageStream(t, "lighthouse", "ImageStreamTag", "app:latest"), imageStream(t, "secrets", "DockerImage", "quay.io/a/b:c")},
			situation: mayTag,
		},
		"CertificateRequest": {
			reason:    "approvers look at its author",
			objects:   []manifest.Object{object(t, "cert-manager.io/v1", "CertificateRequest", "lighthouse", "c", nil)},
			situation: func(w *situation) { w.may("", rule("*", "cert-manager.io", "*")) },
			code:      forbidden, says: []string{"CertificateRequest.cert-manager.io lighthouse/c"},
		},
		"PolicyParams": {
			reason: "a policy shows what is in its parameters",
			objects: []manifest.Object{object(t, "admissionregistration.k8s.io/v1", "ValidatingAdmissionPolicy", "", "p",
				fields{"spec": fields{"paramKind": fields{"apiVersion": "v1", "kind": "Secret"}}})},
			situation: func(w *situation) { w.may("", rule("*", "admissionregistration.k8s.io", "*")) },
			code:      forbidden, says: []string{"for ValidatingAdmissionPolicy p"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w := newSituation(t)
			tc.situation(w)
			want(t, tc.reason, w.creates(rev(1, tc.objects...)), tc.code, tc.says...)
		})
	}
}

// mayBuild gives alice the right to builds with one strategy.
func mayBuild(w *situation) {
	w.crds["build.openshift.io/v1"] = []metav1.APIResource{{Name: "buildconfigs", Kind: "BuildConfig", Namespaced: true}}
	w.may("lighthouse", rule("create,patch", "build.openshift.io", "builds,buildconfigs,builds/docker"))
}

// mayTag gives alice the right to images of one namespace.
func mayTag(w *situation) {
	w.crds["image.openshift.io/v1"] = []metav1.APIResource{{Name: "imagestreams", Kind: "ImageStream", Namespaced: true}, {Name: "imagestreamtags", Kind: "ImageStreamTag", Namespaced: true}}
	w.may("lighthouse", rule("*", "image.openshift.io", "*"))
}

func imageStream(t *testing.T, namespace, kind, name string) manifest.Object {
	return object(t, "image.openshift.io/v1", "ImageStream", "lighthouse", "i-"+namespace, fields{"spec": fields{
		"tags": []any{fields{"name": "t", "from": fields{"kind": kind, "namespace": namespace, "name": name}}},
	}})
}

func definition(t *testing.T, name, plural, kind string) manifest.Object {
	_, group, _ := strings.Cut(name, ".")
	return object(t, "apiextensions.k8s.io/v1", "CustomResourceDefinition", "", name, fields{"spec": fields{
		"group": group, "scope": "Namespaced", "names": fields{"plural": plural, "kind": kind}, "versions": []any{fields{"name": "v1"}},
	}})
}

func manyConfigMaps(t testing.TB, n int) []manifest.Object {
	var objects []manifest.Object
	for i := range n {
		objects = append(objects, configMap(t, fmt.Sprintf("c%02d", i), "1"))
	}
	return objects
}

// TestInternal: Penstock's own writes are exempt, and a user with the same name is not.
func TestInternal(t *testing.T) {
	web := rev(1, deployment(t, "web"))
	self := &user.DefaultInfo{Name: user.APIServerUser, Groups: []string{user.SystemPrivilegedGroup}}
	subresource := ""
	validate := func(token string, who user.Info) (asked int, err error) {
		w := newSituation(t)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		request.MarkInternal(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			a := attributes(admission.Create, web, nil, "")
			a = admission.NewAttributesRecord(a.GetObject(), nil, a.GetKind(), "", a.GetName(), a.GetResource(), subresource, admission.Create, nil, false, who)
			err = w.plugin().Validate(request.WithManifests(r.Context(), web.objects), a, nil)
		}), "secret").ServeHTTP(httptest.NewRecorder(), r)
		return len(w.asked), err
	}
	for _, subresource = range []string{"", "status"} {
		if asked, err := validate("secret", self); err != nil || asked > 0 {
			t.Errorf("Penstock's own request %s: %v, %d questions", subresource, err, asked)
		}
		if _, err := validate("guess", self); err == nil {
			t.Errorf("who has the name alone is taken for Penstock: %s", subresource)
		}
		if _, err := validate("secret", &user.DefaultInfo{Name: "bob"}); err == nil {
			t.Errorf("Penstock acting for bob may do what bob cannot: %s", subresource)
		}
	}
}

func TestMetricsAndAudit(t *testing.T) {
	registry := metrics.NewKubeRegistry()
	w := newSituation(t)
	p := w.plugin()
	p.deps.Metrics = NewMetrics(registry)
	r := rev(1, deployment(t, "web"))
	a := &annotated{Attributes: attributes(admission.Create, r, nil, ""), got: map[string]string{}}
	_ = p.Validate(request.WithManifests(t.Context(), r.objects), a, nil)
	w.may("", rbacv1.PolicyRule{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}})
	_ = p.Validate(context.Background(), attributes(admission.Create, r, nil, ""), nil)
	wantText := `# HELP penstock_privilege_decisions_total [ALPHA] Changes of revisions whose requester was checked, by kind of change and decision (allowed, bypassed, denied, failed, exempt).
# TYPE penstock_privilege_decisions_total counter
penstock_privilege_decisions_total{change="create",decision="bypassed"} 1
penstock_privilege_decisions_total{change="create",decision="denied"} 1
# HELP penstock_privilege_questions_total [ALPHA] Access reviews that the host cluster answered for these checks.
# TYPE penstock_privilege_questions_total counter
penstock_privilege_questions_total 4
`
	if err := testutil.GatherAndCompare(registry, strings.NewReader(wantText), "penstock_privilege_decisions_total", "penstock_privilege_questions_total"); err != nil {
		t.Error(err)
	}
	if got := a.got["privilege.policy.penstock.dev/decision"]; got != "denied" {
		t.Errorf("the audit log says %q, want denied", got)
	}
}

type annotated struct {
	admission.Attributes
	got map[string]string
}

func (a *annotated) AddAnnotation(key, value string) error {
	a.got[key] = value
	return a.Attributes.AddAnnotation(key, value)
}
