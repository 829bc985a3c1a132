package main

import (
	"context"
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// script is a server that returns prepared lists and watches one after the other.
type script struct {
	turns []turn
	asked []string
}

type turn struct {
	listed  []string
	watched []string
	err     error
}

func (s *script) List(_ context.Context, options metav1.ListOptions) (*corev1.ConfigMapList, error) {
	s.asked = append(s.asked, options.FieldSelector)
	if len(s.turns) == 0 {
		return nil, errors.New("the script is over")
	}
	if err := s.turns[0].err; err != nil {
		s.turns = s.turns[1:]
		return nil, err
	}
	list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: "7"}}
	for _, name := range s.turns[0].listed {
		list.Items = append(list.Items, *configMap(name))
	}
	return list, nil
}

func (s *script) Watch(_ context.Context, options metav1.ListOptions) (watch.Interface, error) {
	s.asked = append(s.asked, options.ResourceVersion)
	w := watch.NewFakeWithChanSize(10, false)
	for _, name := range s.turns[0].watched {
		w.Modify(configMap(name))
	}
	w.Stop() // as when the server exits
	s.turns = s.turns[1:]
	return w, nil
}

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}}
}

func TestFollow(t *testing.T) {
	dead := errors.New("penstock ended by itself")
	cases := map[string]struct {
		reason string
		turns  []turn
		alive  error
		want   string
		err    string
	}{
		"listed":  {"it may be so already", []turn{{listed: []string{"a", "done"}}}, nil, "a done", ""},
		"watched": {"or become so", []turn{{listed: []string{"a"}, watched: []string{"b", "done", "c"}}}, nil, "a b done", ""},
		"outage": {
			"a watch that ends is opened again, and so is a server that is away", []turn{
				{watched: []string{"a"}}, {err: errors.New("503")}, {listed: []string{"b"}, watched: []string{"done"}},
			}, nil, "a b done", "",
		},
		"dead": {"nobody waits for a server that will not come", []turn{{listed: []string{"a"}}}, dead, "a", dead.Error()},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			server := &script{turns: tc.turns}
			var seen []string
			err := follow(t.Context(), server, named("x"), func() error { return tc.alive },
				func(list *corev1.ConfigMapList) []*corev1.ConfigMap { return pointers(list.Items) },
				func(object *corev1.ConfigMap) bool {
					seen = append(seen, object.Name)
					return object.Name == "done"
				})
			if got := strings.Join(seen, " "); got != tc.want {
				t.Errorf("%s: saw %q, want %q", tc.reason, got, tc.want)
			}
			if got := errorText(err); got != tc.err {
				t.Errorf("%s: the error is %q, want %q", tc.reason, got, tc.err)
			}
			if server.asked[0] != "metadata.name=x" {
				t.Errorf("the list was for %q", server.asked[0])
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	err := follow(ctx, &script{}, named("x"), func() error { return nil },
		func(list *corev1.ConfigMapList) []*corev1.ConfigMap { return pointers(list.Items) },
		func(*corev1.ConfigMap) bool { return false })
	if errorText(err) != "enough" {
		t.Errorf("the error is %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
