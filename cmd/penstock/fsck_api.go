package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/pager"

	"github.com/penstock-project/penstock/pkg/apis/objectmeta"
	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/client"
	"github.com/penstock-project/penstock/pkg/generated/clientset/versioned"
	"github.com/penstock-project/penstock/pkg/manifest"
	"github.com/penstock-project/penstock/pkg/store/fsck"
	"github.com/penstock-project/penstock/pkg/text"
	"github.com/penstock-project/penstock/pkg/verbs"
)

type apiReport struct {
	Extensions int `json:"extensions"`
	Revisions  int `json:"revisions"`
	Plans      int `json:"plans"`
	// Manifests is the number of manifests that were read. This command compares their content with
	// their digests, except for Secrets. Only the server can compare the content of Secrets; it
	// does so at each read.
	Manifests int `json:"manifests"`
	Secrets   int `json:"secrets"`
	// Unchecked lists the rights that the caller lacks.
	Unchecked []string       `json:"unchecked,omitempty"`
	Problems  []fsck.Problem `json:"problems"`
}

// lookInside is the advice about a problem that the API shows.
const lookInside = "penstock fsck --data-dir says more; see docs/operations/runbooks/PenstockStoreDamaged.md"

// apiCheck reads everything that the API serves, with the caller's rights.
type apiCheck struct {
	api    versioned.Interface
	heard  *client.Warnings
	report apiReport
}

func fsckByAPI(command *cobra.Command, options client.Flags, output string) error {
	clients, heard, err := options.Client()
	if err != nil {
		return err
	}
	c := &apiCheck{api: clients, heard: heard, report: apiReport{Problems: []fsck.Problem{}}}
	if err := c.run(command.Context()); err != nil {
		return fmt.Errorf("the store was not checked: %w", err)
	}
	if err := c.report.print(command.OutOrStdout(), output); err != nil {
		return err
	}
	return c.report.outcome()
}

func (c *apiCheck) run(ctx context.Context) error {
	extensions := map[string][]string{}
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.api.OlmV1alpha1().ClusterExtensionRevisions().List(ctx, options)
	})
	err := pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
		revision := item.(*v1alpha1.ClusterExtensionRevision)
		c.report.Revisions++
		extension := revision.Labels[v1alpha1.ChainLabel]
		if c.unreadable("clusterextensionrevisions/", revision) {
			extensions[extension] = append(extensions[extension], "")
			return nil
		}
		extensions[extension] = append(extensions[extension], revision.Name)
		return c.manifests(ctx, revision)
	})
	if err != nil {
		return fmt.Errorf("reading revisions: %w", err)
	}
	c.report.Extensions = len(extensions)
	for extension, revisions := range extensions {
		if err := c.history(ctx, extension, revisions); err != nil {
			return err
		}
	}
	if err := c.plans(ctx); err != nil {
		return err
	}
	slices.SortStableFunc(c.report.Problems, func(a, b fsck.Problem) int {
		return strings.Compare(string(a.Kind)+a.Key, string(b.Kind)+b.Key)
	})
	return nil
}

func (c *apiCheck) manifests(ctx context.Context, revision *v1alpha1.ClusterExtensionRevision) error {
	key := "clusterextensionrevisions/" + revision.Name
	c.heard.Take()
	var list *v1alpha1.RevisionManifestList
	failed, err := c.read(key, fsck.Corrupt, "get clusterextensionrevisions/manifests", func() (err error) {
		list, err = c.api.OlmV1alpha1().ClusterExtensionRevisions().GetManifests(ctx, revision.Name, metav1.GetOptions{})
		return err
	})
	if failed || err != nil {
		return err
	}
	if hidden := c.heard.Take(); len(hidden) > 0 {
		c.unchecked("get Secrets: of " + revision.Name + ", " + strings.Join(hidden, "; "))
	}
	read := map[manifest.ID]manifest.Digest{}
	for _, item := range list.Items {
		c.report.Manifests++
		object, err := manifest.Parse(item.Raw)
		if err == nil && !object.IsSecret() {
			object, err = manifest.Digester{}.FromJSON(item.Raw)
		}
		if err != nil {
			c.problem(fsck.Corrupt, key, "a manifest cannot be read: "+err.Error())
			continue
		}
		if object.IsSecret() {
			c.report.Secrets++
		}
		read[object.ID] = object.Digest
	}
	for _, phase := range revision.Spec.Phases {
		for i := range phase.Objects {
			c.compare(key, &phase.Objects[i], read)
		}
	}
	return nil
}

// compare compares a listed object with the manifest that was read. Secrets may be missing, and
// their digests are keyed.
func (c *apiCheck) compare(key string, entry *v1alpha1.RevisionObject, read map[manifest.ID]manifest.Digest) {
	// An error is impossible: stored objects were validated.
	version, _ := schema.ParseGroupVersion(entry.APIVersion)
	id := manifest.ID{Group: version.Group, Kind: entry.Kind, Namespace: entry.Namespace, Name: entry.Name}
	if id.IsSecret() {
		return
	}
	switch digest, found := read[id]; {
	case !found:
		c.problem(fsck.Missing, key, fmt.Sprintf("the server does not return the manifest of %s", id))
	case string(digest) != entry.Digest:
		c.problem(fsck.Corrupt, key, fmt.Sprintf("the manifest of %s has digest %s, and the revision lists %s", id, digest, entry.Digest))
	}
}

// history reads the history of an extension. It must have a row for each revision.
func (c *apiCheck) history(ctx context.Context, extension string, revisions []string) error {
	key := "revisionhistories/" + extension
	var history *v1alpha1.RevisionHistory
	failed, err := c.read(key, fsck.Unreadable, "get revisionhistories", func() (err error) {
		history, err = c.api.OlmV1alpha1().RevisionHistories().Get(ctx, extension, metav1.GetOptions{})
		return err
	})
	if failed || err != nil {
		return err
	}
	rows := map[string]bool{}
	for _, record := range history.Revisions {
		rows[record.Name] = true
	}
	for _, name := range revisions {
		if name == "" || rows[name] {
			continue
		}
		// The revision may have been deleted since it was listed.
		if _, err := c.api.OlmV1alpha1().ClusterExtensionRevisions().Get(ctx, name, metav1.GetOptions{}); err == nil {
			c.problem(fsck.Missing, key, "it has no row for "+name)
		}
	}
	return nil
}

func (c *apiCheck) plans(ctx context.Context) error {
	pages := pager.New(func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		return c.api.HcoV1alpha1().ConfigurationPlans().List(ctx, options)
	})
	_, err := c.read("configurationplans", fsck.Unreadable, "list configurationplans.hco.kubevirt.io", func() error {
		return pages.EachListItem(ctx, metav1.ListOptions{}, func(item runtime.Object) error {
			c.report.Plans++
			c.unreadable("configurationplans/", item.(metav1.Object))
			return nil
		})
	})
	return err
}

func (c *apiCheck) unreadable(resource string, object metav1.Object) bool {
	if !objectmeta.IsUnreadable(object) {
		return false
	}
	c.problem(fsck.Unreadable, resource+object.GetName(), object.GetAnnotations()[objectmeta.UnreadableAnnotation])
	return true
}

// read sends a request, and reports whether it failed. It records a problem for a damaged store,
// and an unchecked right if the right is missing. A missing object fails without a problem. Other
// failures are returned as the error.
func (c *apiCheck) read(key string, kind fsck.Kind, right string, request func() error) (failed bool, err error) {
	switch err := request(); {
	case err == nil:
		return false, nil
	case apierrors.IsNotFound(err):
		return true, nil
	case apierrors.IsForbidden(err):
		c.unchecked(right)
		return true, nil
	case apierrors.IsInternalError(err) || apierrors.ReasonForError(err) == metav1.StatusReasonStoreReadError:
		c.problem(kind, key, err.Error())
		return true, nil
	default:
		return true, fmt.Errorf("reading %s: %w", key, err)
	}
}

func (c *apiCheck) unchecked(right string) {
	if !slices.Contains(c.report.Unchecked, right) {
		c.report.Unchecked = append(c.report.Unchecked, right)
	}
}

func (c *apiCheck) problem(kind fsck.Kind, key, message string) {
	c.report.Problems = append(c.report.Problems, fsck.Problem{Kind: kind, Key: key, Message: message, Repair: lookInside})
}

func (r apiReport) outcome() error {
	switch {
	case len(r.Problems) > 0:
		return verbs.Exit(fmt.Errorf("the store is damaged: %s", text.Count(len(r.Problems), "problem")), exitDamaged)
	case len(r.Unchecked) > 0:
		return errors.New("not everything was checked: you lack rights")
	default:
		return nil
	}
}

func (r apiReport) print(out io.Writer, output string) error {
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(r)
	}
	if err := printProblems(out, r.Problems); err != nil {
		return err
	}
	for _, right := range r.Unchecked {
		if _, err := fmt.Fprintf(out, "not checked, because you lack the right to %s\n", right); err != nil {
			return err
		}
	}
	verdict := "what the API serves is sound"
	if len(r.Problems) > 0 {
		verdict = "what the API serves is not sound"
	}
	_, err := fmt.Fprintf(out, "%s: %s of %s, %s, %s; %s compared only by the server\n", verdict,
		text.Count(r.Revisions, "revision"), text.Count(r.Extensions, "extension"), text.Count(r.Plans, "plan"),
		text.Count(r.Manifests, "manifest"), text.Count(r.Secrets, "Secret"))
	return err
}
