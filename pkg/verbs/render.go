package verbs

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
	"github.com/penstock-project/penstock/pkg/manifest"
	manifestrelease "github.com/penstock-project/penstock/pkg/manifest/release"
	"github.com/penstock-project/penstock/pkg/source"
	"github.com/penstock-project/penstock/pkg/source/directory"
	"github.com/penstock-project/penstock/pkg/text"
)

// NewRender returns the command that renders plain manifests as a revision. It sends requests to a
// cluster only for --revision next, and for the capabilities that a chart needs.
func NewRender(p Program) *cobra.Command {
	options := renderOptions{program: p}
	command := &cobra.Command{
		Use:   "render DIR|FILE|-|oci://IMAGE --extension NAME --revision N|next",
		Short: "Turn manifests, a bundle or a chart into a ClusterExtensionRevision",
		Long: "Read Kubernetes manifests, sort them into phases, and print one ClusterExtensionRevision with all of them.\n\n" +
			"All *.yaml, *.yml and *.json files of the directory and its subdirectories are read, except hidden ones.\n" +
			"With - the manifests come from standard input. Errors and warnings name the file and the line.\n\n" +
			"Manifests that server-side apply cannot accept are refused. Environment variables that a container sets twice,\n" +
			"and duplicate items, are corrected with a warning: the last value counts.\n\n" +
			"With --layout release the files are those of an OpenShift release, named 0000_<run level>_<component>_<anything>:\n" +
			"each run level becomes a phase, and annotations say which clusters a manifest is for. It is an error\n" +
			"when a flag that an annotation needs is missing. Manifests with release.openshift.io/delete are left out:\n" +
			"objects that a revision does not list any more are deleted when it has succeeded.\n\n" +
			"With --bundle the manifests come from a registry+v1 bundle, installed in the namespace that --install-namespace\n" +
			"names, which has to exist. With --chart they come from a Helm chart; hooks become phases.\n\n" +
			"An image, oci://REGISTRY/REPOSITORY with a tag or a digest, has a bundle, a chart or plain manifests; its labels and\n" +
			"media types say which. With --catalog and --package the image is the bundle that an extension would get.",
		Example: p.examples(
			"% render ./manifests --extension cert-manager --revision 1 | kubectl create -f -",
			"% render ./manifests --extension cert-manager --revision 2 --paused | kubectl create -f -",
			"% render ./manifests --extension cert-manager --revision next --on-failure Rollback --progress-deadline-minutes 10 |",
			"  kubectl create -f -",
			"% render ./release --layout release --profile self-managed-high-availability --extension cluster --revision 1",
			"% render --bundle ./bundle --install-namespace lighthouse-system --certificates cert-manager --extension lighthouse --revision 1",
			"% render --chart ./chart.tgz --values values.yaml --install-namespace shop --extension shop --revision 1",
			"% render oci://registry.example.com/lighthouse/bundle:v1.1.0 --install-namespace lighthouse-system --certificates cert-manager",
			"  --extension lighthouse --revision 1",
			"% render --catalog oci://registry.example.com/catalog:latest --package lighthouse --version '>=1.0 <2'",
			"  --install-namespace lighthouse-system --certificates cert-manager --extension lighthouse --revision next",
			"kustomize build ./overlay | % render - --extension lighthouse --revision 2 | kubectl create -f -",
		),
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			if err := options.validate(); err != nil {
				return err
			}
			if err := options.validateInput(command, args); err != nil {
				return err
			}
			return render(command, options)
		},
	}
	options.add(command.Flags())
	for _, required := range []string{extensionFlag, "revision"} {
		if err := command.MarkFlagRequired(required); err != nil {
			panic(err) // Only an undefined flag causes an error.
		}
	}
	return command
}

// render reads the input, prints the revision on stdout, and prints a summary for people on stderr.
func render(command *cobra.Command, options renderOptions) error {
	read, err := readInput(command, options)
	if err != nil {
		return fmt.Errorf("nothing rendered:\n%w", err)
	}
	phases := read.Phases
	if err := checkLimits(phases); err != nil {
		return fmt.Errorf("rendering %s: %w", options.from, err)
	}
	for _, early := range tooEarly(phases) {
		fmt.Fprintf(command.ErrOrStderr(), "warning: %s\n", early)
	}
	if options.version == "" {
		options.version = read.Version
	}
	if options.revision == nextRevision {
		if err := options.askNext(command.Context()); err != nil {
			return fmt.Errorf("nothing rendered: %w", err)
		}
	}
	encoded, err := encode(newRenderedRevision(read, options), options.output)
	if err != nil {
		return fmt.Errorf("encoding the revision: %w", err)
	}
	if _, err := command.OutOrStdout().Write(encoded); err != nil {
		return fmt.Errorf("writing the revision: %w", err)
	}
	_, err = io.WriteString(command.ErrOrStderr(), summary(phases, options)+read.notes)
	return err
}

// tooEarly returns the objects whose kind a later phase defines, such as hooks of a chart.
func tooEarly(phases []source.Phase) []manifestrelease.Early {
	var objects []manifest.Object
	var numbers []int
	for number, phase := range phases {
		for _, object := range phase.Objects {
			objects, numbers = append(objects, object), append(numbers, number)
		}
	}
	return manifestrelease.TooEarly(objects, func(i int) int { return numbers[i] })
}

// readPhases reads a directory, a file, or standard input for "-".
func readPhases(ctx context.Context, stdin io.Reader, from string, warn func(directory.Error)) ([]source.Phase, error) {
	if from == "-" {
		return directory.RenderStream(ctx, stdin, "stdin", directory.Options{Warn: warn})
	}
	info, err := os.Stat(from)
	if err != nil {
		return nil, err
	}
	if !info.IsDir() {
		file, err := os.Open(from)
		if err != nil {
			return nil, err
		}
		defer file.Close()
		return directory.RenderStream(ctx, file, from, directory.Options{Warn: warn})
	}
	// The root does not follow symbolic links out of the directory. So only content of the
	// directory is rendered.
	root, err := os.OpenRoot(from)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	phases, err := directory.Render(ctx, root.FS(), directory.Options{Warn: below(from, warn)})
	return phases, withDirectory(from, err)
}

// below returns a function that adds the directory to the file names of warnings.
func below(dir string, warn func(directory.Error)) func(directory.Error) {
	return func(one directory.Error) {
		one.File = filepath.Join(dir, filepath.FromSlash(one.File))
		warn(one)
	}
}

// warnings returns a function that prints warnings for people.
func warnings(command *cobra.Command) func(directory.Error) {
	return func(one directory.Error) { fmt.Fprintf(command.ErrOrStderr(), "warning: %s\n", one.Error()) }
}

// withDirectory adds the directory to the file names of errors.
func withDirectory(dir string, err error) error {
	var all *directory.Errors
	if errors.As(err, &all) {
		for _, one := range all.List {
			one.File = filepath.Join(dir, filepath.FromSlash(one.File))
		}
		return err
	}
	if err != nil {
		return fmt.Errorf("%s: %w", dir, err)
	}
	return nil
}

func checkLimits(phases []source.Phase) error {
	size := 0
	for _, phase := range phases {
		for _, object := range phase.Objects {
			size += len(object.JSON)
		}
	}
	if len(phases) > v1alpha1.MaxPhases {
		return fmt.Errorf("%d phases are more than the %d that a revision can have: split them into several extensions", len(phases), v1alpha1.MaxPhases)
	}
	if count := source.Count(phases); count > v1alpha1.MaxObjects {
		return fmt.Errorf("%d objects are more than the %d that a revision can have: split them into several extensions", count, v1alpha1.MaxObjects)
	}
	if size > v1alpha1.MaxManifestBytes {
		return fmt.Errorf("manifests of %d bytes are more than the %d that a revision can have: split them into several extensions", size, v1alpha1.MaxManifestBytes)
	}
	return nil
}

// renderedRevision is a ClusterExtensionRevision as a user would write it. It has no status, and in
// metadata only the name and the annotations for the history.
type renderedRevision struct {
	APIVersion string                                `json:"apiVersion"`
	Kind       string                                `json:"kind"`
	Metadata   renderedMetadata                      `json:"metadata"`
	Spec       v1alpha1.ClusterExtensionRevisionSpec `json:"spec"`
}

type renderedMetadata struct {
	Name        string            `json:"name"`
	Annotations map[string]string `json:"annotations,omitempty"`
}

func newRenderedRevision(read input, options renderOptions) renderedRevision {
	revision := renderedRevision{
		APIVersion: v1alpha1.SchemeGroupVersion.String(),
		Kind:       "ClusterExtensionRevision",
		Metadata:   renderedMetadata{Name: options.revisionName(), Annotations: map[string]string{}},
		Spec: v1alpha1.ClusterExtensionRevisionSpec{
			Revision:                options.number,
			CollisionProtection:     v1alpha1.CollisionProtection(options.collisionProtection),
			ProgressDeadlineMinutes: options.deadlineMinutes,
			OnFailure:               v1alpha1.OnFailure(options.onFailure),
			TeardownPolicy:          v1alpha1.TeardownPolicy(options.teardownPolicy),
		},
	}
	for key, value := range map[string]string{
		v1alpha1.VersionAnnotation: options.version, v1alpha1.KubeVersionAnnotation: read.KubeVersion, v1alpha1.MaxOpenShiftAnnotation: read.MaxOpenShift(),
	} {
		if value != "" {
			revision.Metadata.Annotations[key] = value
		}
	}
	maps.Copy(revision.Metadata.Annotations, read.annotations)
	if options.paused {
		revision.Spec.LifecycleState = v1alpha1.LifecycleStatePaused
	}
	if options.target != "" {
		revision.Spec.TargetRef = &v1alpha1.TargetReference{Name: options.target}
	}
	for _, phase := range read.Phases {
		rendered := v1alpha1.RevisionPhase{Name: phase.Name}
		for _, object := range phase.Objects {
			rendered.Objects = append(rendered.Objects, v1alpha1.RevisionObject{Object: &v1alpha1.Manifest{Raw: object.JSON}})
		}
		revision.Spec.Phases = append(revision.Spec.Phases, rendered)
	}
	return revision
}

func encode(revision renderedRevision, format string) ([]byte, error) {
	if format == "yaml" {
		return yaml.Marshal(revision)
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	err := encoder.Encode(revision)
	return b.Bytes(), err
}

// summary describes the rendered revision: cert-manager-1: 47 objects in 8 phases.
func summary(phases []source.Phase, options renderOptions) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s in %s\n", options.revisionName(), text.Count(source.Count(phases), "object"), text.Count(len(phases), "phase"))
	width := len(slices.MaxFunc(phases, func(a, c source.Phase) int { return len(a.Name) - len(c.Name) }).Name)
	secrets := 0
	for _, phase := range phases {
		kinds := map[string]int{}
		var order []string
		for _, object := range phase.Objects {
			if kinds[object.Kind] == 0 {
				order = append(order, object.Kind)
			}
			kinds[object.Kind]++
			if object.IsSecret() {
				secrets++
			}
		}
		for i, kind := range order {
			order[i] = fmt.Sprintf("%d %s", kinds[kind], kind)
		}
		fmt.Fprintf(&b, "  %-*s  %s\n", width, phase.Name, strings.Join(order, ", "))
	}
	if secrets > 0 {
		fmt.Fprintf(&b, "note: the output has %s in clear text\n", text.Count(secrets, "Secret"))
	}
	return b.String()
}
