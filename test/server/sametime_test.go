//go:build integration

package server_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/penstock-project/penstock/test/framework/poll"
)

// stuck creates an extension with two active revisions of the same object. The first is complete.
// The second waits for a probe that never succeeds.
func (d door) stuck(t *testing.T, name string) {
	t.Helper()
	object := fmt.Sprintf(`{"object":{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default"},"data":{"k":"v"}}}`, name)
	d.MustKubectlInput(evil(name+"-1", object), "create", "-f", "-")
	d.MustKubectl("wait", "--for=condition=Succeeded", "cer/"+name+"-1", poll.TimeoutFlag)
	probe := `"progressionProbes":[{"selector":{"groupKind":{"kind":"ConfigMap"}},"assertions":[{"cel":{"expression":"self.data.k == 'never'","message":"never"}}]}],"phases":`
	d.MustKubectlInput(strings.Replace(evil(name+"-2", object), `"phases":`, probe, 1), "create", "-f", "-")
}

// together sends requests at the same time. It returns the codes in rising order, and the texts of
// the answers.
func (r intruders) together(t *testing.T, attempts ...attempt) ([]int, string) {
	t.Helper()
	codes, texts := make([]int, len(attempts)), make([]string, len(attempts))
	barrier := make(chan struct{})
	var sent sync.WaitGroup
	for i, a := range attempts {
		sent.Go(func() {
			<-barrier
			codes[i], texts[i] = r.send(t, a)
		})
	}
	close(barrier)
	sent.Wait()
	slices.Sort(codes)
	return codes, strings.Join(texts, "\n")
}

// atTheSameTime: a user who cannot delete a shared object gives up both of its revisions at once.
// Only one request succeeds.
func (d door) atTheSameTime(t *testing.T, r intruders) {
	for i := range 3 {
		name := fmt.Sprintf("same%d", i)
		d.stuck(t, name)
		archive := `{"spec":{"lifecycleState":"Archived"}}`
		remove := func(revision string) attempt {
			return attempt{who: "writer", method: http.MethodDelete, path: revisionsPath + "/" + revision, contentType: asJSON}
		}
		ways := [][]attempt{
			{patch("writer", name+"-1", asMerge, archive, ""), patch("writer", name+"-2", asMerge, archive, "")},
			{remove(name + "-1"), remove(name + "-2")},
			{remove(name + "-1"), patch("writer", name+"-2", asMerge, archive, "")},
		}
		codes, said := r.together(t, ways[i]...)
		if !slices.Equal(codes, []int{http.StatusOK, http.StatusForbidden}) || !strings.Contains(said, "writer cannot delete configmaps default/"+name) {
			t.Errorf("%s: %v %.1000s", name, codes, said)
		}
		d.survives(t, name)
	}
}

// collection: the user cannot give up both with one request either.
func (d door) collection(t *testing.T, r intruders) {
	d.stuck(t, "all")
	code, text := r.send(t, attempt{who: "writer", method: http.MethodDelete, path: revisionsPath + "?labelSelector=" + url.QueryEscape("penstock.dev/chain=all"), contentType: asJSON})
	if code != http.StatusForbidden || !strings.Contains(text, "writer cannot delete configmaps default/all") {
		t.Errorf("%d %.1000s", code, text)
	}
	if got := d.MustKubectl("get", "cer", "all-2", "-o", "jsonpath={.metadata.deletionTimestamp}"); got != "" {
		t.Errorf("the last revision is being deleted since %s", got)
	}
	d.survives(t, "all")

	// A user with the rights deletes all revisions at once. The extension can then be forgotten.
	d.MustKubectl("delete", "cer", "-l", "penstock.dev/chain=all", poll.TimeoutFlag)
	if out := d.KubectlInput("", "delete", "revisionhistory", "all", "--as=writer"); !strings.Contains(out.Stderr, "Forbidden") {
		t.Errorf("a user without rights deleted the history: %s", out)
	}
	eventually(t, "the extension to be forgotten", func() error {
		if out := d.Kubectl("delete", "revisionhistory", "all"); out.ExitCode != 0 {
			return missingError{out.Stderr}
		}
		return nil
	})
	d.tries("begins anew", "creator", evil("all-1"), "creator cannot begin extensions.policy.penstock.dev all", "create", "-f", "-")
	d.tries("leaves out too many", "", evil("all-2147483647"), "must be from 1 to 1000", "create", "-f", "-")
	d.tries("begins anew", "", evil("all-1"), "", "create", "-f", "-")
}

// survives waits until Penstock has processed the revisions. It fails unless the object exists and
// is not being deleted.
func (d door) survives(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the older revision of "+name+" to be let go", func() error {
		if got := d.MustKubectl("get", "cer", name+"-1", name+"-2", "--ignore-not-found", "-o", `jsonpath={range .items[*]}{.metadata.deletionTimestamp}{end}`); got != "" {
			return missingError{got}
		}
		return nil
	})
	if got := d.MustKubectl("get", "configmap", name, "-n", "default", "-o", "jsonpath={.metadata.deletionTimestamp}{.data.k}"); got != "v" {
		t.Errorf("the object is %q", got)
	}
}
