package gitops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/adopt"
	"github.com/penstock-project/penstock/pkg/source/helm/chunked"
	"github.com/penstock-project/penstock/test/framework/penstock"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// olmv1 is a site in which OLM v1's operator-controller has installed a ClusterExtension.
type olmv1 struct {
	*site
	uid string
	// owner is the owner of the objects: the ClusterExtension, or a ClusterObjectSet.
	owner map[string]any
	// rollsOut applies the Deployment of the newest revision again.
	rollsOut func()
}

// Kinds of OLM's revisions: the present kind, and the kind before version 1.9.
const (
	objectSets = "ClusterObjectSet"
	revisions  = "ClusterExtensionRevision"
)

// ours is the full name of Penstock's revisions, because kubectl prefers OLM's.
const ours = "clusterextensionrevisions.v1alpha1.olm.operatorframework.io"

// definition returns the needed part of the definition of OLM's revisions.
func definition(kind string) string {
	plural := strings.ToLower(kind) + "s"
	return fmt.Sprintf(`apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]s.olm.operatorframework.io}
spec:
  group: olm.operatorframework.io
  scope: Cluster
  names: {kind: %[2]s, plural: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, kind)
}

// fromOLM adopts installations of OLM v1: revisions of both kinds, and Helm releases. Before
// operator-controller is scaled to zero, the adoption is refused.
func fromOLM(t *testing.T, h *host) {
	for _, kind := range []string{objectSets, revisions} {
		h.MustKubectlInput(definition(kind), "apply", "-f", "-")
		h.MustKubectl("wait", "--for=condition=Established", poll.TimeoutFlag, "crd/"+strings.ToLower(kind)+"s.olm.operatorframework.io")
	}
	h.MustKubectl("create", "namespace", "olmv1-system")
	h.MustKubectl("create", "deployment", "-n", "olmv1-system", "operator-controller-controller-manager", "--image=example.com/oc")
	h.MustKubectl("rollout", "status", "-n", "olmv1-system", "deployment/operator-controller-controller-manager", poll.TimeoutFlag)
	none := newOLMv1(h.in(t, "olm-none"))
	mark := h.Audit().Mark()
	none.says(none.adoptOLM().Stderr, "nothing adopted", "Deployment olmv1-system/operator-controller-controller-manager runs (1 replica)",
		"kubectl scale -n olmv1-system deployment/operator-controller-controller-manager --replicas=0")
	none.nothingWritten(mark)
	h.MustKubectl("scale", "-n", "olmv1-system", "deployment/operator-controller-controller-manager", "--replicas=0")
	h.MustKubectl("rollout", "status", "-n", "olmv1-system", "deployment/operator-controller-controller-manager", poll.TimeoutFlag) // the status omits zero replicas
	none.says(none.mustAdoptOLM("--dry-run"), "olm-none", "nothing is installed")

	for name, scenario := range map[string]func(*olmv1){
		"sets": func(o *olmv1) {
			o.installsSets(objectSets)
			o.goesThereAndBack("ClusterObjectSet/olm-sets-2")
		},
		"revisions": func(o *olmv1) {
			o.installsSets(revisions)
			o.dies()
			o.whileOthersWrite(func() {
				o.says(o.mustAdoptOLM(), "olm-revisions is adopted from ClusterExtensionRevision/olm-revisions-2")
			})
		},
		"release": func(o *olmv1) {
			o.installsRelease()
			o.goesThereAndBack("HelmRelease/olmv1-system/olm-release:2")
			o.isUpgradedByOLM()
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(newOLMv1(h.in(t, "olm-"+name)))
		})
	}
}

func newOLMv1(s *site) *olmv1 {
	s.t.Helper()
	s.MustKubectlInput(fmt.Sprintf(`apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: %s}
spec: {namespace: %s, source: {sourceType: Catalog, catalog: {packageName: shop}}}
`, s.release, s.namespace), "create", "-f", "-")
	o := &olmv1{site: s, uid: s.read(".metadata.uid", "clusterextension/"+s.release)}
	s.most = 3
	return o
}

// made returns the objects of a version with operator-controller's marks.
func (o *olmv1) made(version int, mark func(metadata map[string]any)) []map[string]any {
	o.t.Helper()
	all := o.manifests(version)
	for _, object := range all {
		metadata := object["metadata"].(map[string]any)
		labels := metadata["labels"].(map[string]any)
		labels["olm.operatorframework.io/owner-kind"], labels["olm.operatorframework.io/owner-name"] = "ClusterExtension", o.release
		if mark != nil {
			mark(metadata)
		}
	}
	return all
}

// manifests returns the objects of a version as in a bundle, each with labels.
func (s *site) manifests(version int) []map[string]any {
	s.t.Helper()
	var all []map[string]any
	for _, file := range s.version(version) {
		var object map[string]any
		if err := yaml.Unmarshal([]byte(file), &object); err != nil {
			s.t.Fatal(err)
		}
		if text, is := object["stringData"].(map[string]any); is {
			delete(object, "stringData")
			data := map[string]any{}
			for key, value := range text {
				data[key] = []byte(value.(string))
			}
			object["data"] = data
		}
		metadata := object["metadata"].(map[string]any)
		if object["kind"] != "ClusterRole" {
			metadata["namespace"] = s.namespace
		}
		if metadata["labels"] == nil {
			metadata["labels"] = map[string]any{}
		}
		all = append(all, object)
	}
	return all
}

func (s *site) send(objects []map[string]any, args ...string) {
	s.t.Helper()
	s.MustKubectlInput(s.json(map[string]any{"apiVersion": "v1", "kind": "List", "items": objects}), append(args, "-f", "-")...)
	s.MustKubectl("rollout", "status", "-n", s.namespace, "deployment/web", poll.TimeoutFlag)
}

func (s *site) logged(text string) string { s.t.Log("\n" + text); return text }

func (s *site) json(value any) string {
	s.t.Helper()
	raw, err := json.Marshal(value)
	if err != nil {
		s.t.Fatal(err)
	}
	return string(raw)
}

// installsSets creates two revisions of OLM and the objects of the second. The first revision has
// its objects inline, the second in a Secret.
func (o *olmv1) installsSets(kind string) {
	o.t.Helper()
	resource := strings.ToLower(kind) + "s.v1.olm.operatorframework.io"
	for version := 1; version <= 2; version++ {
		var entries []map[string]any
		data := map[string]string{}
		for i, object := range o.made(version, nil) {
			if version == 1 {
				entries = append(entries, map[string]any{"object": object})
				continue
			}
			key := fmt.Sprintf("k%d", i)
			data[key] = o.json(object)
			entries = append(entries, map[string]any{"ref": map[string]any{"name": o.release + "-objects", "namespace": "olmv1-system", "key": key}})
		}
		if version == 2 {
			o.MustKubectlInput(o.json(map[string]any{
				"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": o.release + "-objects", "namespace": "olmv1-system"},
				"immutable": true, "type": "olm.operatorframework.io/object-data", "stringData": data,
			}), "create", "-f", "-")
		}
		name := fmt.Sprintf("%s-%d", o.release, version)
		o.MustKubectlInput(o.json(map[string]any{
			"apiVersion": "olm.operatorframework.io/v1", "kind": kind,
			"metadata": map[string]any{
				"name": name, "finalizers": []string{"olm.operatorframework.io/teardown"},
				"labels": map[string]string{"olm.operatorframework.io/owner-kind": "ClusterExtension", "olm.operatorframework.io/owner-name": o.release},
				"annotations": map[string]string{
					"olm.operatorframework.io/package-name": "shop", "olm.operatorframework.io/bundle-name": fmt.Sprintf("shop.v1.%d.0", version),
					"olm.operatorframework.io/bundle-version": fmt.Sprintf("1.%d.0", version), "olm.operatorframework.io/bundle-reference": "example.com/shop@sha256:" + strings.Repeat("0", 64),
				},
			},
			"spec": map[string]any{
				"lifecycleState": map[int]string{1: "Archived", 2: "Active"}[version], "revision": version,
				"phases": []any{map[string]any{"name": "deploy", "objects": entries}},
			},
		}), "create", "-f", "-")
		o.MustKubectl("patch", resource, name, "--subresource=status", "--type=merge", "-p",
			`{"status":{"conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded","message":"","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	}
	uid := o.read(".metadata.uid", resource+"/"+o.release+"-2")
	o.owner = map[string]any{"apiVersion": "olm.operatorframework.io/v1", "kind": kind, "name": o.release + "-2", "uid": uid, "controller": true, "blockOwnerDeletion": true}
	o.rollsOut = func() {
		o.send(o.made(2, func(metadata map[string]any) {
			metadata["labels"].(map[string]any)["app.kubernetes.io/managed-by"] = "olm.operatorframework.io"
			metadata["annotations"] = map[string]any{"olm.operatorframework.io/revision": "2"}
			metadata["ownerReferences"] = []any{o.owner}
		}), "apply", "--server-side", "--force-conflicts", "--field-manager=olm.operatorframework.io")
	}
	o.rollsOut()
}

// installsRelease creates a Helm release with two revisions, in chunks, and its objects.
func (o *olmv1) installsRelease() {
	o.t.Helper()
	o.owner = map[string]any{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "name": o.release, "uid": o.uid, "controller": true, "blockOwnerDeletion": true}
	o.writesRelease(1, "superseded")
	o.writesRelease(2, "deployed")
	o.send(o.made(2, func(metadata map[string]any) {
		metadata["labels"].(map[string]any)["app.kubernetes.io/managed-by"] = "Helm"
		metadata["annotations"] = map[string]any{"meta.helm.sh/release-name": o.release, "meta.helm.sh/release-namespace": o.namespace}
		metadata["ownerReferences"] = []any{o.owner}
	}), "create", "--field-manager=operator-controller")
	o.rollsOut = func() {
		o.MustKubectl("set", "image", "-n", o.namespace, "deployment/web", "web=example.com/web:v2", "--field-manager=operator-controller")
	}
}

func (o *olmv1) writesRelease(version int, status string) {
	o.t.Helper()
	var manifest strings.Builder
	for _, object := range o.made(version, func(metadata map[string]any) { metadata["ownerReferences"] = []any{o.owner} }) {
		manifest.WriteString(o.json(object) + "\n")
	}
	release := o.json(map[string]any{
		"name": o.release, "namespace": o.namespace, "version": version, "manifest": manifest.String(),
		"info":   map[string]any{"status": status, "description": "Upgrade complete", "last_deployed": "2026-01-02T03:04:05.6Z"},
		"chart":  map[string]any{"metadata": map[string]any{}},
		"labels": map[string]string{chunked.PackageNameLabel: "shop", chunked.BundleNameLabel: fmt.Sprintf("shop.v1.%d.0", version), chunked.BundleVersionLabel: fmt.Sprintf("1.%d.0", version)},
	})
	index, chunks, err := chunked.Encode([]byte(release), chunked.Options{
		Namespace: "olmv1-system", Name: o.release, Version: version, Status: status, PieceBytes: 300, CreatedAt: time.Unix(1795353079, 0),
	})
	if err != nil {
		o.t.Fatal(err)
	}
	index.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}
	o.MustKubectlInput(o.json(index), "create", "-f", "-")
	for _, chunk := range chunks {
		chunk.TypeMeta = index.TypeMeta
		o.MustKubectlInput(o.json(chunk), "create", "-f", "-")
	}
}

func (o *olmv1) adoptOLM(flags ...string) penstock.Output {
	o.t.Helper()
	return o.program.Run(o.t, "", append([]string{"adopt", "olmv1", "--kubeconfig", o.Kubeconfig(), o.release}, flags...)...)
}

func (o *olmv1) mustAdoptOLM(flags ...string) string {
	o.t.Helper()
	out := o.adoptOLM(flags...)
	if out.ExitCode != 0 {
		o.t.Fatal(out)
	}
	return out.Stdout
}

// whole returns the objects with their owners and field managers, without times.
func (o *olmv1) whole() map[string]string {
	o.t.Helper()
	found := map[string]string{}
	for name := range o.objects() {
		var object map[string]any
		if err := json.Unmarshal([]byte(o.MustKubectl("get", "-n", o.namespace, name, "-o", "json", "--show-managed-fields")), &object); err != nil {
			o.t.Fatal(err)
		}
		metadata := object["metadata"].(map[string]any)
		delete(object, "status")
		delete(metadata, "resourceVersion")
		delete(metadata, "generation")
		fields := map[string]any{}
		for _, entry := range metadata["managedFields"].([]any) {
			one := entry.(map[string]any)
			if one["subresource"] != nil {
				continue
			}
			// Helm 3 writes without field ownership, so only the presence of an entry is compared.
			had := any("some")
			if one["operation"] == "Apply" {
				had = one["fieldsV1"]
			}
			fields[fmt.Sprint(one["manager"], "/", one["operation"])] = had
		}
		metadata["managedFields"] = fields
		found[name] = o.json(object)
	}
	return found
}

// goesThereAndBack: the extension is adopted, has a history, and is given back to OLM.
func (o *olmv1) goesThereAndBack(from string) {
	o.t.Helper()
	name := o.release
	o.anyOwner = true

	mark := o.Audit().Mark()
	o.says(o.logged(o.mustAdoptOLM("--dry-run")), from, "can be adopted", "nothing was written")
	o.nothingWritten(mark)
	o.MustKubectl("set", "image", "-n", o.namespace, "deployment/web", "web=example.com/other")
	out := o.adoptOLM("--dry-run")
	o.says(out.Stdout, "refused", "differs", ".spec.template.spec.containers[0].image")
	o.says(out.Stderr, "Deployment.apps "+o.namespace+"/web differs from "+from)
	o.rollsOut()
	o.MustKubectl("rollout", "status", "-n", o.namespace, "deployment/web", poll.TimeoutFlag)
	before, whole := o.objects(), o.whole()
	pods := o.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")

	mark = o.Audit().Mark()
	o.says(o.logged(o.mustAdoptOLM()), name+" is adopted from "+from+": 6 objects, "+name+"-2 has succeeded")
	o.undisrupted(mark, before, pods)
	for object := range before {
		if raw := o.read(".metadata.ownerReferences", object); raw != "" {
			o.t.Errorf("%s belongs to %s", object, raw)
		}
		if managers := o.managers(object); !strings.Contains(managers, "penstock/"+name+"/Apply") {
			o.t.Errorf("%s belongs to %s", object, managers)
		}
	}
	o.says(o.mustAdoptOLM(), "adopted before")
	if owner := o.read(".metadata.ownerReferences[*].uid", ours+"/"+name+"-2"); owner != o.uid {
		o.t.Errorf("the revision belongs to %q, want the ClusterExtension %s", owner, o.uid)
	}
	o.becomes("1.2.0", ".status.install.bundle.version", "clusterextension/"+name)

	// The history includes the revisions before the adoption.
	o.says(o.plugin("kubectl penstock history "+name), "1.1.0", "1.2.0")
	o.plugin("kubectl penstock rollback " + name + " --to " + name + "-1 --yes --accept=critical --cause test")
	o.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, ours+"/"+name+"-3")
	o.says(o.adoptOLM("--undo").Stderr, name+"-3 has other content than "+from, "rollback")
	o.plugin("kubectl penstock rollback " + name + " --to " + name + "-2 --yes --accept=critical --cause test")
	o.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, ours+"/"+name+"-4")
	o.MustKubectl("rollout", "status", "-n", o.namespace, "deployment/web", poll.TimeoutFlag)

	// The undo.
	before = o.objects()
	pods = o.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")
	mark = o.Audit().Mark()
	o.says(o.mustAdoptOLM("--undo", "--dry-run"), "nothing was written")
	o.nothingWritten(mark)
	o.says(o.logged(o.mustAdoptOLM("--undo")), name+" is OLM's again")
	o.undisrupted(mark, before, pods)
	// Objects that were created again in between have changed; all others are unchanged.
	after := o.whole()
	delete(whole, "configmap/more")
	delete(after, "configmap/more")
	o.sameButRevisionOfDeployment(whole, after)
	if left := o.MustKubectl("get", ours, "-o", "name", "-l", "penstock.dev/chain="+name); left != "" {
		o.t.Errorf("revisions: %s", left)
	}
}

// sameButRevisionOfDeployment compares objects. It ignores the revision annotation of the
// Deployment, which grows with each rollback.
func (o *olmv1) sameButRevisionOfDeployment(before, after map[string]string) {
	o.t.Helper()
	for _, all := range []map[string]string{before, after} {
		var object map[string]any
		if err := json.Unmarshal([]byte(all["deployment/web"]), &object); err != nil {
			o.t.Fatal(err)
		}
		delete(object["metadata"].(map[string]any)["annotations"].(map[string]any), "deployment.kubernetes.io/revision")
		all["deployment/web"] = o.json(object)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		o.t.Errorf("OLM's objects (-before +after):\n%s", diff)
	}
}

// dies: after the command is killed at any write, the same command finishes the work. FULL=1 kills
// it right before and right after each write.
func (o *olmv1) dies() {
	o.t.Helper()
	ctx, cancel := context.WithTimeout(o.t.Context(), 3*patience)
	defer cancel()
	step := 5
	if os.Getenv("FULL") == "1" {
		step = 1
	}
	o.anyOwner = false
	before := o.objects()
	died := true
	for k := 1; died; k += step {
		died = false
		for i, do := range []func(context.Context, *fuse) error{o.takeOLM, o.backToOLM} {
			f := &fuse{left: k, lands: (k+i)%2 == 0}
			err := do(ctx, f)
			died = died || f.dead
			if f.dead != (err != nil) {
				o.t.Fatalf("%d, killed at write %d: %t, error %v", i, k, f.dead, err)
			}
			if err != nil {
				err = do(ctx, &fuse{left: -1})
			}
			if err != nil {
				o.t.Fatalf("%d, again after it was killed at write %d: %v", i, k, err)
			}
		}
		if diff := cmp.Diff(unversioned(before), unversioned(o.objects())); diff != "" {
			o.t.Fatalf("killed at write %d (-before +after):\n%s", k, diff)
		}
	}
}

func unversioned(all map[string]state) map[string]state {
	out := map[string]state{}
	for name, one := range all {
		one.Generation = 0
		out[name] = one
	}
	return out
}

func (o *olmv1) takeOLM(ctx context.Context, f *fuse) error {
	adopter := o.adopter(f)
	plans, err := adopter.PlanOLMv1(ctx, adopt.OLMv1Request{Namespace: "olmv1-system", Extensions: []string{o.release}})
	if err != nil {
		return err
	}
	if obstacles := plans[0].Obstacles(); len(obstacles) > 0 {
		return errors.New(strings.Join(obstacles, "; "))
	}
	revision, err := adopter.AdoptOLMv1(ctx, plans[0])
	if err != nil {
		return err
	}
	return adopter.Await(ctx, revision)
}

func (o *olmv1) backToOLM(ctx context.Context, f *fuse) error {
	adopter := o.adopter(f)
	back, err := adopter.PlanUndoOLMv1(ctx, "olmv1-system", o.release)
	if err != nil {
		return err
	}
	_, err = adopter.Undo(ctx, back)
	return err
}

// isUpgradedByOLM: a user starts operator-controller again, which creates another revision.
func (o *olmv1) isUpgradedByOLM() {
	o.t.Helper()
	o.mustAdoptOLM()
	o.writesRelease(3, "deployed")
	o.MustKubectl("patch", "-n", o.namespace, "configmap/settings", "--type=merge", "-p", `{"data":{"version":"3"}}`)
	o.isContested(o.release+"-2", "OLM's operator-controller has revision 3 of release olmv1-system/"+o.release, "kubectl penstock adopt olmv1 "+o.release+" --undo")
}
