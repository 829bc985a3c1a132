package gitops

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/plane"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// TestAdopt runs the cases of docs/how-to/adopt-a-helm-release.md: the possible releases, and the
// results of adopting them. Helm applies client-side or server-side; FULL=1 tries both for each
// case.
func TestAdopt(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	h := newHost(t)
	h.MustKubectlInput(definitionsOfOLMv0(), "apply", "-f", "-")
	scenarios := map[string]func(*site){
		"server-side":           func(s *site) { taken(s, 6) },
		"contested-client-side": func(s *site) { s.serverSide = false; contested(s) },
		"obstacles":             obstacles,
		"crashes":               crashes,
		"meanwhile":             meanwhile,
		"many":                  many,
	}
	if os.Getenv("FULL") == "1" {
		scenarios["client-side"] = func(s *site) { s.serverSide = false; taken(s, 3) }
		scenarios["contested-server-side"] = contested
	}
	t.Run("together", func(t *testing.T) {
		for name, scenario := range scenarios {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				scenario(h.in(t, name))
			})
		}
	})
	t.Run("recorded", func(t *testing.T) { recorded(h.in(t, "fb")) })
	t.Run("olmv1", func(t *testing.T) {
		in := *h
		in.Cluster, in.t = h.Cluster.In(t), t
		fromOLM(t, &in)
	})
	t.Run("olmv0", func(t *testing.T) {
		in := *h
		in.Cluster, in.t = h.Cluster.In(t), t
		fromOLMv0(t, &in)
	})
	t.Run("killed", func(t *testing.T) { killed(h.in(t, "killed")) })
}

// taken: a release of n revisions is adopted, rolled back, and given back.
func taken(s *site, n int) {
	for version := 1; version <= n; version++ {
		s.helms(version)
	}
	name := s.namespace
	nth := func(number int) string { return fmt.Sprintf("%s-%d", name, number) }
	before, notes := s.objects(), s.secrets()
	pods := s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")

	mark := s.Audit().Mark()
	out := s.mustAdopt("--dry-run")
	s.says(out, fmt.Sprintf("%s   Active     deployed     web-1.%d.0   6", nth(n), n), fmt.Sprintf("%s   Archived   superseded   web-1.%d.0", nth(n-1), n-1),
		"Deployment.apps "+name+"/web", "same", "nothing was written")
	if rows := strings.Count(out, "superseded"); rows != min(n, 5)-1 {
		s.t.Errorf("%d older revisions: %s", rows, out)
	}
	s.nothingWritten(mark)

	mark = s.Audit().Mark()
	s.says(s.mustAdopt(), fmt.Sprintf("%s/%s is extension %s: 6 objects, %s has succeeded", name, name, name, nth(n)))
	s.undisrupted(mark, before, pods)
	if diff := cmp.Diff(notes, s.secrets()); diff != "" {
		s.t.Errorf("Helm's notes (-before +after):\n%s", diff)
	}
	if got := s.read(".metadata.annotations.penstock\\.dev/superseded-by", fmt.Sprintf("secret/sh.helm.release.v1.%s.v%d", name, n)); got != name {
		s.t.Errorf("the Secret of the release says %q", got)
	}
	for object := range before {
		if managers := s.managers(object); !strings.Contains(managers, "penstock/"+name+"/Apply") || strings.Contains(managers, "helm/") {
			s.t.Errorf("%s belongs to %s", object, managers)
		}
	}
	s.says(s.mustAdopt(), "was adopted before as extension "+name)

	// The history includes the revisions before the adoption.
	s.says(s.plugin("kubectl penstock history "+name), "Helm: Upgrade complete", fmt.Sprintf("1.%d.0", n), "+0 ~3 -0")
	s.says(s.MustKubectl("get", "revisiondiff", nth(n-1)+".."+nth(n)), "settings", "web")
	s.plugin("kubectl penstock rollback " + name + " --to " + nth(n-1) + " --yes --accept=critical --cause test")
	s.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, "cer/"+nth(n+1))
	s.becomes(fmt.Sprintf("example.com/web:v%d", n-1), ".spec.template.spec.containers[0].image", "deployment/web")
	if odd := s.read(".data.odd", "configmap/settings"); odd != "" == ((n-1)%2 == 0) {
		s.t.Errorf("version %d has the field of odd versions: %q", n-1, odd)
	}

	// The undo.
	s.refuses([]string{"--undo"}, fmt.Sprintf("%s has other content than revision %d", nth(n+1), n), "rollback")
	s.plugin("kubectl penstock rollback " + name + " --to " + nth(n) + " --yes --accept=critical --cause test")
	s.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, "cer/"+nth(n+2))
	s.MustKubectl("rollout", "status", "-n", s.namespace, "deployment/web", poll.TimeoutFlag)
	before = s.objects()
	pods = s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")
	mark = s.Audit().Mark()
	s.says(s.mustAdopt("--undo", "--dry-run"), nth(n+2), "nothing was written")
	s.nothingWritten(mark)
	s.says(s.mustAdopt("--undo"), "is Helm's again")
	s.returned(mark, before, pods, notes)
	// Helm continues, and deletes objects that a version does not have.
	s.helms(7, 8)
	if odd := s.read(".data.odd", "configmap/settings"); odd != "" {
		s.t.Errorf("version 8 has no such field: %q", odd)
	}
	// The release may be adopted again.
	s.says(s.mustAdopt(), nth(n+2)+" has succeeded")
}

// undisrupted checks that objects changed only their ownership, and checks the writes in the audit
// log.
func (s *site) undisrupted(mark plane.Mark, before map[string]state, pods string) {
	s.t.Helper()
	after := s.objects()
	for name, one := range after {
		// An annotation of a Deployment raises its generation, and Penstock adds one.
		if was := before[name].Generation; one.Generation == was+1 && strings.HasPrefix(name, "deployment/") {
			one.Generation = was
			after[name] = one
		}
	}
	if diff := cmp.Diff(before, after); diff != "" {
		s.t.Errorf("objects (-before +after):\n%s", diff)
	}
	if now := s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods"); now != pods {
		s.t.Errorf("ReplicaSets and Pods were %s, and are %s", pods, now)
	}
	writes := map[string]int{}
	for _, r := range s.Audit().Since(mark, plane.ByAgent("penstock"), plane.Writes()) {
		if strings.Contains(r.URI, "dryRun=") || r.Namespace != s.namespace && r.Name != s.namespace+"-reader" {
			continue
		}
		switch r.Resource {
		case "configmaps", "secrets", "deployments", "services", "clusterroles", "replicasets", "pods":
			if r.Verb != "patch" || r.Subresource != "" {
				s.t.Errorf("not a patch: %s", r)
			}
			if !strings.HasPrefix(r.Name, "sh.helm.release") {
				writes[r.Resource+"/"+r.Name]++
			}
		}
	}
	for object, n := range writes {
		if n > max(s.most, 2) {
			s.t.Errorf("%s was written %d times", object, n)
		}
	}
}

// returned checks that no mark of Penstock is left.
func (s *site) returned(mark plane.Mark, before map[string]state, pods, notes string) {
	s.t.Helper()
	s.undisrupted(mark, before, pods)
	if diff := cmp.Diff(notes, s.secrets()); diff != "" {
		s.t.Errorf("Helm's notes (-before +after):\n%s", diff)
	}
	for object := range s.objects() {
		raw := s.MustKubectl("get", "-n", s.namespace, object, "-o", "json", "--show-managed-fields")
		if strings.Contains(raw, "penstock") {
			s.t.Errorf("%s still has marks:\n%s", object, raw)
		}
		want := "helm/Update"
		if s.serverSide {
			want = "helm/Apply"
		}
		s.says(s.managers(object), want)
	}
	if left := s.MustKubectl("get", "cer", "-o", "name", "-l", "penstock.dev/chain="+s.namespace); left != "" {
		s.t.Errorf("revisions: %s", left)
	}
	if says := s.read(".metadata.annotations", "secrets", "-l", "owner=helm"); strings.Contains(says, "penstock") {
		s.t.Errorf("the Secrets say %s", says)
	}
}
