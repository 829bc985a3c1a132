package gitops

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// TestAdopt is the matrix of docs/how-to/adopt-a-helm-release.md: what is found, and what
// becomes of it.
func TestAdopt(t *testing.T) {
	if os.Getenv("PENSTOCK_PROGRAM") == "" {
		t.Skip("it needs the program: make test")
	}
	h := newHost(t)
	for name, scenario := range map[string]func(*site){
		"server-side":           taken,
		"client-side":           func(s *site) { s.serverSide = false; taken(s) },
		"contested-server-side": contested,
		"contested-client-side": func(s *site) { s.serverSide = false; contested(s) },
		"obstacles":             obstacles,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			scenario(h.in(t, name))
		})
	}
}

// taken: a release of six revisions is adopted, rolled back, and given back.
func taken(s *site) {
	s.helms(1, 2, 3, 4, 5, 6)
	name := s.namespace
	before, notes := s.objects(), s.secrets()
	pods := s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")

	mark := s.Audit().Mark()
	out := s.mustAdopt("--dry-run")
	s.says(out, name+"-6   Active     deployed     web-1.6.0   6", name+"-2   Archived   superseded   web-1.2.0", "Deployment.apps "+name+"/web", "same", "nothing was written")
	if strings.Contains(out, name+"-1 ") {
		s.t.Errorf("more than five revisions: %s", out)
	}
	s.nothingWritten(mark)

	mark = s.Audit().Mark()
	s.says(s.mustAdopt(), fmt.Sprintf("%s/%s is extension %s: 6 objects, %s-6 has succeeded", name, name, name, name))
	s.undisrupted(mark, before, pods)
	if diff := cmp.Diff(notes, s.secrets()); diff != "" {
		s.t.Errorf("Helm's notes (-before +after):\n%s", diff)
	}
	if got := s.read(".metadata.annotations.penstock\\.dev/superseded-by", "secret/sh.helm.release.v1."+name+".v6"); got != name {
		s.t.Errorf("the Secret of the release says %q", got)
	}
	for object := range before {
		if managers := s.managers(object); !strings.Contains(managers, "penstock/"+name+"/Apply") || strings.Contains(managers, "helm/") {
			s.t.Errorf("%s belongs to %s", object, managers)
		}
	}
	s.says(s.mustAdopt(), "was adopted before as extension "+name)

	// From the first day.
	s.says(s.plugin("kubectl penstock history "+name), "Helm: Upgrade complete", "1.6.0")
	s.says(s.MustKubectl("get", "revisiondiff", name+"-5.."+name+"-6"), "settings", "web")
	s.plugin("kubectl penstock rollback " + name + " --to " + name + "-4 --yes --cause test")
	s.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, "cer/"+name+"-7")
	s.becomes("example.com/web:v4", ".spec.template.spec.containers[0].image", "deployment/web")
	if odd := s.read(".data.odd", "configmap/settings"); odd != "" {
		s.t.Errorf("version 4 has no such field: %q", odd)
	}

	// And back.
	s.refuses([]string{"--undo"}, name+"-7 has other content than revision 6", "rollback")
	s.plugin("kubectl penstock rollback " + name + " --to " + name + "-6 --yes --cause test")
	s.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, "cer/"+name+"-8")
	s.MustKubectl("rollout", "status", "-n", s.namespace, "deployment/web", "--timeout=60s")
	before = s.objects()
	pods = s.read("range .items[*]}{.metadata.uid} {end", "replicasets,pods")
	mark = s.Audit().Mark()
	s.says(s.mustAdopt("--undo", "--dry-run"), name+"-8", "nothing was written")
	s.nothingWritten(mark)
	s.says(s.mustAdopt("--undo"), "is Helm's again")
	s.returned(mark, before, pods, notes)
	// Helm goes on: what a version does not have disappears.
	s.helms(7, 8)
	if odd := s.read(".data.odd", "configmap/settings"); odd != "" {
		s.t.Errorf("version 8 has no such field: %q", odd)
	}
	// And may be adopted again.
	s.says(s.mustAdopt(), name+"-8 has succeeded")
}

// undisrupted compares objects with what they were, but for their ownership, and looks into
// the audit log for what was written.
func (s *site) undisrupted(mark plane.Mark, before map[string]state, pods string) {
	s.t.Helper()
	after := s.objects()
	for name, one := range after {
		// Annotations of a Deployment are part of its generation, and ours is one of them.
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
		if n > 2 {
			s.t.Errorf("%s was written %d times", object, n)
		}
	}
	s.t.Logf("writes: %v", writes)
}

// returned: nothing is left of Penstock.
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
