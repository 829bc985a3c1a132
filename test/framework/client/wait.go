package client

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/client-go/util/jsonpath"

	"github.com/penstock-project/penstock/pkg/extension"
	"github.com/penstock-project/penstock/test/framework/await"
	"github.com/penstock-project/penstock/test/framework/poll"
)

// Until waits until check returns nil for an object, and returns the object. check gets nil for a
// missing object.
func (c *Client) Until(object string, check func(*unstructured.Unstructured) error) *unstructured.Unstructured {
	c.t.Helper()
	objects, name := c.named(object)
	var last *unstructured.Unstructured
	lacks := fmt.Errorf("the object was never read")
	err := await.Selected(c.t.Context(), objects, fields.OneTermEqualSelector(metav1.ObjectNameField, name), func(found *unstructured.Unstructured) (bool, error) {
		last, lacks = found, check(found)
		return lacks == nil, nil
	})
	if err != nil {
		c.t.Fatalf("%s: %v (%v); the last state is %s", object, lacks, err, await.Shown(last))
	}
	return last
}

// Gone waits until an object does not exist.
func (c *Client) Gone(object string) {
	c.t.Helper()
	c.Until(object, func(found *unstructured.Unstructured) error {
		if found != nil {
			return fmt.Errorf("it exists")
		}
		return nil
	})
}

// There waits until an object exists, and returns it.
func (c *Client) There(object string) *unstructured.Unstructured {
	c.t.Helper()
	return c.Until(object, exists)
}

func exists(found *unstructured.Unstructured) error {
	if found == nil {
		return fmt.Errorf("it does not exist")
	}
	return nil
}

// Becomes waits until a field of an object has a value. path is a JSONPath without braces.
func (c *Client) Becomes(object, path, want string) {
	c.t.Helper()
	c.Until(object, func(found *unstructured.Unstructured) error {
		if err := exists(found); err != nil {
			return err
		}
		got, err := field(found, path)
		if err == nil && got != want {
			err = fmt.Errorf("%s is %q, want %q", path, got, want)
		}
		return err
	})
}

// Mentions waits until a field of an object contains a text.
func (c *Client) Mentions(object, path, part string) {
	c.t.Helper()
	c.Until(object, func(found *unstructured.Unstructured) error {
		if err := exists(found); err != nil {
			return err
		}
		got, err := field(found, path)
		if err == nil && !strings.Contains(got, part) {
			err = fmt.Errorf("%s is %q, and does not mention %q", path, got, part)
		}
		return err
	})
}

// Field returns the current value of a field, or "".
func (c *Client) Field(object, path string) string {
	c.t.Helper()
	got, err := field(c.Get(object), path)
	if err != nil {
		c.t.Fatalf("reading %s: %v", object, err)
	}
	return got
}

// Is fails unless a field has a value now.
func (c *Client) Is(object, path, want string) {
	c.t.Helper()
	if got := c.Field(object, path); got != want {
		c.t.Errorf("%s of %s is %q, want %q", path, object, got, want)
	}
}

func field(object *unstructured.Unstructured, path string) (string, error) {
	parsed := jsonpath.New("field").AllowMissingKeys(true)
	if err := parsed.Parse("{" + path + "}"); err != nil {
		return "", err
	}
	var out strings.Builder
	err := parsed.Execute(&out, object.Object)
	return out.String(), err
}

// Condition waits until a condition for the object's current generation has a status, and its
// reason and message contain all texts.
func (c *Client) Condition(object, kind, status string, texts ...string) {
	c.t.Helper()
	c.Until(object, func(found *unstructured.Unstructured) error {
		if err := exists(found); err != nil {
			return err
		}
		for _, one := range conditions(found) {
			if one.Type != kind {
				continue
			}
			said := fmt.Sprintf("%s %s: %s", one.Status, one.Reason, one.Message)
			if one.ObservedGeneration != 0 && one.ObservedGeneration != found.GetGeneration() {
				return fmt.Errorf("condition %s is of generation %d, not of %d", kind, one.ObservedGeneration, found.GetGeneration())
			}
			if string(one.Status) != status {
				return fmt.Errorf("condition %s is %s, want %s", kind, said, status)
			}
			for _, text := range texts {
				if !strings.Contains(said, text) {
					return fmt.Errorf("condition %s does not say %q: %s", kind, text, said)
				}
			}
			return nil
		}
		return fmt.Errorf("there is no condition %s", kind)
	})
}

// conditions returns the conditions of an object's status.
func conditions(object *unstructured.Unstructured) []metav1.Condition {
	var status struct {
		Conditions []metav1.Condition `json:"conditions"`
	}
	content, err := json.Marshal(object.Object["status"])
	if err != nil || json.Unmarshal(content, &status) != nil {
		return nil
	}
	return status.Conditions
}

// Event waits for an event about a cluster-scoped object that contains all texts.
func (c *Client) Event(about, reason string, texts ...string) {
	c.t.Helper()
	events := c.objects.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace(metav1.NamespaceDefault)
	var seen []string
	selector := fields.SelectorFromSet(fields.Set{"involvedObject.name": about, "reason": reason})
	err := await.Selected(c.t.Context(), events, selector, func(found *unstructured.Unstructured) (bool, error) {
		if found == nil {
			return false, nil
		}
		note, _, _ := unstructured.NestedString(found.Object, "message")
		seen = append(seen, note)
		for _, text := range texts {
			if !strings.Contains(note, text) {
				return false, nil
			}
		}
		return true, nil
	})
	if err != nil {
		c.t.Errorf("no event %s about %s says %q (%v); seen:\n%s", reason, about, texts, err, strings.Join(seen, "\n"))
	}
}

// Stamped waits until Penstock's webhooks answer for the kind of a manifest: kube-apiserver learns
// of webhooks from a watch, with a delay. It does not create the manifest.
func (c *Client) Stamped(manifest string) {
	c.t.Helper()
	probe := c.decoded(manifest)[0]
	var said error
	err := poll.Until(c.t.Context(), func(context.Context) bool {
		made, err := c.create(probe, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		said = err
		if apierrors.IsInvalid(err) {
			c.t.Fatal(err)
		}
		return err == nil && made.GetAnnotations()[extension.AuthorAnnotation] != ""
	})
	if err != nil {
		c.t.Fatalf("nobody notes who writes a %s: %v", probe.GetKind(), said)
	}
}
