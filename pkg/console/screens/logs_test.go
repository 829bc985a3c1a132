package screens

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	corev1 "k8s.io/api/core/v1"
)

// TestLines: the log of a container is shown as lines, for any content.
func TestLines(t *testing.T) {
	long := strings.Repeat("x", 3*maxLine)
	for name, tc := range map[string]struct {
		log  io.Reader
		want []string
		err  bool
	}{
		"Lines":    {log: strings.NewReader("one\n\n\ttwo\nthree"), want: []string{"one", "", "\ttwo", "three"}},
		"Long":     {log: strings.NewReader(long + "\nnext\n"), want: []string{long[:maxLine], "next"}},
		"LongEnd":  {log: strings.NewReader(long), want: []string{long[:maxLine]}},
		"Colors":   {log: strings.NewReader("\x1b[31mred\x1b[0m  \u202eturned\x00\r\n\xff\n"), want: []string{"red  turned", ""}},
		"Cut":      {log: io.MultiReader(strings.NewReader("one\ntw"), iotest.ErrReader(errors.New("gone"))), want: []string{"one", "tw"}, err: true},
		"Nothing":  {log: strings.NewReader("")},
		"SentLate": {log: iotest.OneByteReader(strings.NewReader("one\ntwo\n")), want: []string{"one", "two"}},
	} {
		t.Run(name, func(t *testing.T) {
			var got []string
			err := sendLines(t.Context(), tc.log, func(m Message) { got = append(got, m.Log...) })
			if !slices.Equal(got, tc.want) || (err != nil) != tc.err {
				t.Errorf("%d lines %.80q, %v, want %.80q", len(got), got, err, tc.want)
			}
		})
	}
}

// TestPodOf: each container is shown. A container without status waits.
func TestPodOf(t *testing.T) {
	pod := &corev1.Pod{Spec: corev1.PodSpec{InitContainers: []corev1.Container{{Name: "first"}}, Containers: []corev1.Container{{Name: "web"}, {Name: "side"}}}}
	pod.Status.Phase = corev1.PodRunning
	pod.Status.InitContainerStatuses = []corev1.ContainerStatus{{Name: "first", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{Reason: "Completed"}}}}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "web", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off\n5m"}},
		LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 3, Reason: "Error"}}}}
	got := podOf(pod)
	want := []Container{
		{Name: "first", Init: true, State: "Terminated", Reason: "Completed"},
		{Name: "web", State: "Waiting", Reason: "CrashLoopBackOff", Message: "back-off 5m", Ended: "exit code 3", Restarts: 3},
		{Name: "side", State: "Waiting"},
	}
	if !slices.Equal(got.Containers, want) || got.State != "CrashLoopBackOff" || got.Said != "0 of 2 containers ready, 3 restarts" || got.Signal != "needs" {
		t.Errorf("%+v", got)
	}
}
