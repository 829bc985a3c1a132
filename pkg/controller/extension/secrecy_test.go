package extension

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apiserver/pkg/authentication/user"

	olmv1alpha1 "github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/controller/maker"
	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/pkg/extension/author"
	"github.com/penstock-project/penstock/pkg/extension/status"
	"github.com/penstock-project/penstock/pkg/source"
)

func (p *plane) putSecret(version, text string) {
	made := bundleOf("lamp", version, text).(fstest.MapFS)
	made["manifests/secret.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: pin}\nstringData: {pin: \"1234\"}\n")}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.images["r.example/lamp:v"+version] = made
}

// lack takes rights away from all users, and grants all other rights.
func (p *plane) lack(verbs ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	clear(p.lacks)
	for _, verb := range verbs {
		p.lacks[verb] = true
	}
}

// TestGuessedSecret: the content has a Secret that the user has no right to know. It is not
// proposed for that user, because users could compare its digest. Penstock does not compare it with
// the installed content.
func TestGuessedSecret(t *testing.T) {
	for name, tc := range map[string]struct{ text, after string }{
		"Other": {"other", "1 Active 1.0.0 alice, 2 Paused 1.1.0 penstock"},
		"Same":  {"same", "1 Active 1.1.0 alice"},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.putSecret("1.0.0", "same")
			p.putSecret("1.1.0", tc.text)
			p.lack("bypass", "get", "patch")
			p.offer("1.0.0")
			p.apply(nil)
			p.process()
			p.awaitRevisions("1 Active 1.0.0 alice") // admission checks the user who creates the revision
			p.succeed("lamp-1")
			p.offer("1.0.0", "1.1.0")
			p.await("it is denied", func() bool { return p.condition("Progressing") == "False/Blocked" })
			p.mu.Lock()
			shown := p.shown()
			p.mu.Unlock()
			if shown != "1 Active 1.0.0 alice" {
				t.Errorf("there is %s", shown)
			}
			p.lack("bypass", "get")
			p.awaitRevisions(tc.after)
		})
	}
}

// TestNobodysRevision: a revision without a ClusterExtension is not written until an extension
// takes it over.
func TestNobodysRevision(t *testing.T) {
	p := newPlane(t)
	p.apply(nil)
	p.clock.Step(author.Lifetime)
	found, err := p.host.Tracker().Get(extension.Resource, "", "lamp")
	if err != nil {
		t.Fatal(err)
	}
	object := found.(*unstructured.Unstructured)
	e, err := extension.From(object)
	if err != nil {
		t.Fatal(err)
	}
	revision := &olmv1alpha1.ClusterExtensionRevision{}
	revision.Name = "lamp-1"
	p.put(revision)
	s := &scope{Controller: &Controller{Options: Options{Key: p.key, Clock: p.clock}}, object: object, extension: e,
		Chain: maker.Chain{Store: maker.Store{Own: writer{p, "penstock"}}, Rules: rules(), Revisions: []olmv1alpha1.ClusterExtensionRevision{*revision}}}
	before := p.version
	writer := s.writer(&desired{pinned: "x", bundle: &status.Bundle{Version: "9.9.9"}})
	if stopped := writer.Keep(t.Context(), revision, nil); resultOf(stopped) != status.Settled || p.version != before {
		t.Errorf("%s after %d writes: %v", resultOf(stopped), p.version-before, p.revisions["lamp-1"].Annotations)
	}
}

type readDefinitions struct{ targets []string }

func (d *readDefinitions) Definition(_ context.Context, target, _ string) (*apiextensionsv1.CustomResourceDefinition, error) {
	d.targets = append(d.targets, target)
	return nil, errors.New("what the other cluster says")
}

// TestTargetUnread: Penstock reads nothing of a remote cluster for a user who cannot use it, not
// even the Secret with the kubeconfig.
func TestTargetUnread(t *testing.T) {
	definition := phasesOf(t, `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"lamps.example.com"},"spec":{"group":"example.com"}}`)
	alice := &user.DefaultInfo{Name: "alice"}
	for name, tc := range map[string]struct {
		annotated, usual string
		lacks            []string
		identity         maker.Identity
		read             []string
	}{
		"Annotated":   {"other", "", []string{"use", "bypass"}, maker.Identity{As: alice, Author: alice}, nil},
		"Proposal":    {"other", "", []string{"use", "bypass"}, maker.Identity{Author: alice}, nil},
		"OfTheServer": {"", "usual", []string{"use", "bypass"}, maker.Identity{As: alice, Author: alice}, nil},
		"MayUse":      {"other", "", []string{"bypass"}, maker.Identity{As: alice, Author: alice}, []string{"other"}},
		"MayPropose":  {"other", "", []string{"bypass"}, maker.Identity{Author: alice}, []string{"other"}},
		"MayBypass":   {"other", "", []string{"use"}, maker.Identity{As: alice, Author: alice}, []string{"other"}},
		"Host":        {"", "", []string{"use", "bypass"}, maker.Identity{As: alice, Author: alice}, []string{""}},
	} {
		t.Run(name, func(t *testing.T) {
			p := newPlane(t)
			p.lack(tc.lacks...)
			read, e := &readDefinitions{}, &extension.Extension{}
			e.Name, e.Annotations = "lamp", map[string]string{}
			if tc.annotated != "" {
				e.Annotations[extension.TargetAnnotation] = tc.annotated
			}
			s := &scope{Controller: &Controller{Options: Options{Rights: p, Definitions: read, Target: tc.usual}}, extension: e}
			stopped := s.judge(t.Context(), tc.identity, &content{Rendered: source.Rendered{Phases: definition}})
			if stopped == nil {
				t.Fatal("what cannot be read is taken for safe")
			}
			told := strings.Contains(stopped.Message, "what the other cluster says")
			if !slices.Equal(read.targets, tc.read) || told != (tc.read != nil) || (resultOf(stopped) == status.Denied) == told {
				t.Errorf("it is read of %q, and %s: %s", read.targets, resultOf(stopped), stopped.Message)
			}
		})
	}
}
