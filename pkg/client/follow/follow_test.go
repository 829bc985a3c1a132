package follow

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/penstock-project/penstock/pkg/apis/olm/v1alpha1"
)

type thing = v1alpha1.ClusterExtensionRevision

func named(name string) *thing { return &thing{ObjectMeta: metav1.ObjectMeta{Name: name}} }

func names(all []*thing) []string {
	var out []string
	for _, one := range all {
		out = append(out, one.Name)
	}
	return out
}

// TestEach: each change is seen, and a watch that ends is restarted.
func TestEach(t *testing.T) {
	lists, watches := 0, make(chan *watch.FakeWatcher, 4)
	var troubles []error
	source := Source[*thing]{
		Pause:   time.Nanosecond,
		Trouble: func(err error) { troubles = append(troubles, err) },
		List: func(context.Context, metav1.ListOptions) ([]*thing, string, error) {
			lists++
			if lists == 2 {
				return nil, "", errors.New("no answer")
			}
			return []*thing{named("a")}, "7", nil
		},
		Watch: func(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
			if options.ResourceVersion != "7" {
				t.Errorf("watched from %q", options.ResourceVersion)
			}
			w := watch.NewFakeWithChanSize(4, false)
			watches <- w
			return w, nil
		},
	}
	var seen [][]string
	go func() {
		first := <-watches
		first.Add(named("b"))
		first.Delete(named("a"))
		first.Stop()
		(<-watches).Modify(named("done"))
	}()
	err := source.Each(t.Context(), func(all []*thing) (bool, error) {
		seen = append(seen, names(all))
		return slices.Contains(names(all), "done"), nil
	})
	want := [][]string{{"a"}, {"a", "b"}, {"b"}, {"a"}, {"a", "done"}}
	if err != nil || !slices.EqualFunc(seen, want, slices.Equal) {
		t.Errorf("%v, %v, want %v", seen, err, want)
	}
	if len(troubles) != 1 {
		t.Errorf("troubles: %v", troubles)
	}
}

// TestRefused: if the server refuses the caller, or never answers, Each returns an error.
func TestRefused(t *testing.T) {
	for name, failure := range map[string]error{"away": errors.New("no answer"), "refused": apierrors.NewForbidden(schema.GroupResource{}, "", nil)} {
		source := Source[*thing]{List: func(context.Context, metav1.ListOptions) ([]*thing, string, error) { return nil, "", failure }}
		err := source.Each(t.Context(), func([]*thing) (bool, error) { return false, nil })
		if !errors.Is(err, failure) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
