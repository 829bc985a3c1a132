//go:build integration

package extension_test

import (
	"fmt"
	"strings"

	"github.com/penstock-project/penstock/pkg/extension"
)

// Ordered: an extension waits for the extensions that it requires. While other extensions require
// an extension, it is neither upgraded out of their range nor deleted without an acknowledgement.
func ordered(w shared) {
	base := w.name + "-base"
	bundles := w.publish(base, bundle{Package: base, Version: "1.0.0"})
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name, fmt.Sprintf("penstock.dev/requires: %q", base+">=1 <2")))
	w.awaitExtension(w.name, "it waits", is("Ready=False/RequirementsUnmet", "Stalled=False/NotStalled"))
	w.apply(alice, base, w.extend(base, base))
	w.awaitExtension(base, "it is installed", installed("1.0.0"))
	w.awaitExtension(w.name, "it follows", installed("1.0.0"))

	for annotation, refusal := range map[string]string{
		extension.RequiresAnnotation + "=" + w.name: "it would require itself by way of 1 other extensions",
		extension.RequiresAnnotation + "=" + base:   "it would require itself by way of 0 other extensions",
		extension.RequiresAnnotation + "=a, b>one":  `"b>one" has no range of versions behind the name`,
	} {
		if out := alice.Kubectl("annotate", "--overwrite", "clusterextension", base, annotation); out.ExitCode == 0 || !strings.Contains(out.Stderr, refusal) {
			w.t.Errorf("%s: %s", annotation, out)
		}
	}

	w.publish(base, append(bundles, bundle{Package: base, Version: "2.0.0", Replaces: "1.0.0"})...)
	alice.MustKubectl("patch", "clusterextension", base, "--type=merge", "-p", `{"spec":{"source":{"catalog":{"version":"2.0.0"}}}}`)
	w.awaitExtension(base, "it is held", is("Ready=False/RequiredByOthers", "Stalled=True/RequiredByOthers"))
	refused := w.Kubectl("delete", "clusterextension", base)
	if refused.ExitCode == 0 || !strings.Contains(refused.Stderr, "1 installed extensions require it; to continue") {
		w.t.Fatalf("the deletion: %s", refused)
	}
	message := w.MustKubectl("get", "clusterextension", base, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	_, command, _ := strings.Cut(message, ": kubectl ")
	alice.MustKubectl(strings.Fields(command)...)
	w.awaitExtension(base, "it is acknowledged", installed("2.0.0"))
	w.awaitExtension(w.name, "nothing happens to it", installed("1.0.0"))

	_, command, _ = strings.Cut(w.Kubectl("delete", "clusterextension", base).Stderr, ": kubectl ")
	w.MustKubectl(strings.Fields(command)...)
	w.MustKubectl("delete", "clusterextension", base)
	w.MustKubectl("delete", "clusterextension", w.name)
}

// Dependent: a bundle waits for a package that it requires. The message names the command that
// installs the package. A user can instead accept that it is installed by other means.
func dependent(w shared) {
	base, other := w.name+"-base", w.name+"-other"
	w.publish(w.name, bundle{Package: w.name, Version: "1.0.0", Requires: base + " >=1.0.0 <2.0.0"},
		bundle{Package: other, Version: "1.0.0", Requires: base + " >=2.0.0"}, bundle{Package: base, Version: "1.0.0"})
	alice := w.author("alice")
	w.apply(alice, w.name, w.extend(w.name, w.name))
	w.awaitExtension(w.name, "it waits", is("Ready=False/RequirementsUnmet: the bundle requires package "+base+" >=1.0.0 <2.0.0, which no ClusterExtension that its author may get has installed: kubectl penstock install "+base+" -n NAMESPACE --version '>=1.0.0 <2.0.0'", "Stalled=False/NotStalled"))
	w.apply(alice, base, w.extend(base, base))
	w.awaitExtension(base, "it is installed", installed("1.0.0"))
	w.awaitExtension(w.name, "it follows", installed("1.0.0"))

	w.apply(alice, other, w.extend(other, other))
	w.awaitExtension(other, "another version does not do", is("Ready=False/RequirementsUnmet"))
	message := w.MustKubectl("get", "clusterextension", other, "-o", `jsonpath={.status.conditions[?(@.type=="Ready")].message}`)
	_, command, _ := strings.Cut(message, "by other means: kubectl ")
	alice.MustKubectl(strings.Fields(command)...)
	w.awaitExtension(other, "it is accepted", installed("1.0.0"))
	for _, one := range []string{w.name, other, base} {
		w.MustKubectl("delete", "clusterextension", one)
	}
}
