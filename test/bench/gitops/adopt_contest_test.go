package gitops

import (
	"strings"

	"github.com/penstock-project/penstock/test/framework/plane"
)

// contested: a user runs Helm after the adoption. Penstock writes nothing until a user decides: to
// adopt Helm's new revision, to keep the present content, or to give everything back to Helm.
func contested(s *site) {
	name := s.namespace
	s.helms(1, 2)
	s.mustAdopt()
	image := func(version string) {
		s.t.Helper()
		if got := s.read(".spec.template.spec.containers[0].image", "deployment/web"); got != "example.com/web:"+version {
			s.t.Errorf("the image is %s, want %s", got, version)
		}
	}

	mark := s.Audit().Mark()
	s.helms(3)
	s.isContested(name+"-2", "Helm has revision 3 of release "+name+"/"+name+" (deployed), and 2 was adopted")
	s.unfought(mark)
	image("v3")

	// Adopt Helm's revision.
	s.says(s.mustAdopt("--dry-run"), name+"-3   Active", "can be adopted")
	s.says(s.mustAdopt(), name+"-3 has succeeded")
	s.says(s.mustAdopt(), "was adopted before as extension "+name, name+"-3 has succeeded")
	image("v3")
	s.becomes("False", `.status.conditions[?(@.type=="Stalled")].status`, "cer/"+name+"-3")
	s.plugin("kubectl penstock rollback " + name + " --to " + name + "-2 --yes --accept=critical --cause test")
	s.becomes("True", `.status.conditions[?(@.type=="Succeeded")].status`, "cer/"+name+"-4")
	image("v2")

	// Keep the present content.
	mark = s.Audit().Mark()
	s.helms(5)
	s.isContested(name+"-4", "Helm has revision 4", "kubectl annotate --overwrite cer")
	s.unfought(mark)
	image("v5")
	s.MustKubectl("annotate", "--overwrite", "cer", name+"-4", "penstock.dev/helm-release="+name+"/"+name+":4")
	s.becomes("example.com/web:v2", ".spec.template.spec.containers[0].image", "deployment/web")
	s.becomes("False", `.status.conditions[?(@.type=="Stalled")].status`, "cer/"+name+"-4")
	s.refuses(nil, "nothing adopted", "keeps its content instead of revision 4 of Helm")

	// Give everything back to Helm.
	s.helms(6)
	s.isContested(name+"-4", "Helm has revision 5")
	s.says(s.mustAdopt("--undo"), "is Helm's again")
	image("v6")
	for object := range s.objects() {
		if managers := s.managers(object); strings.Contains(managers, "penstock") {
			s.t.Errorf("%s belongs to %s", object, managers)
		}
	}
}

func (s *site) isContested(revision string, says ...string) {
	s.t.Helper()
	s.becomes("Contested", `.status.conditions[?(@.type=="Stalled")].reason`, ours+"/"+revision)
	s.says(s.read(`.status.conditions[?(@.type=="Stalled")].message`, ours+"/"+revision), says...)
}

// unfought checks that Penstock has written no object of the release.
func (s *site) unfought(mark plane.Mark) {
	s.t.Helper()
	for _, r := range s.Audit().Since(mark, plane.ByAgent("penstock"), plane.Writes()) {
		if (r.Namespace == s.namespace || r.Name == s.namespace+"-reader") && r.Resource != "events" && !strings.Contains(r.URI, "dryRun=") {
			s.t.Errorf("it fights: %s", r)
		}
	}
}
