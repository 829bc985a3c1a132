package applycheck

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"
)

func TestMend(t *testing.T) {
	types := builtin(t)
	cases := map[string]struct {
		asHelm                  bool
		reason, container, want string
		mends                   []string
		left                    int
	}{
		"LastWins": {
			reason:    "the kubelet takes the last value, which stays at its place",
			container: "env: [{name: A, value: one}, {name: B, value: x}, {name: A, value: two}, {name: C, value: $(A)}]",
			want:      "env: [{name: B, value: x}, {name: A, value: two}, {name: C, value: $(A)}]",
			mends:     []string{`spec.containers[0].env[0]: "A" is set again in item 2 (counted from 0), and the last value counts: this one is left out`},
		},
		"Thrice": {
			reason:    "of three the last stays",
			container: "env: [{name: A, value: one}, {name: A, value: two}, {name: A, value: three}]",
			want:      "env: [{name: A, value: three}]",
			mends: []string{
				`spec.containers[0].env[0]: "A" is set again in item 2 (counted from 0), and the last value counts: this one is left out`,
				`spec.containers[0].env[1]: "A" is set again in item 2 (counted from 0), and the last value counts: this one is left out`,
			},
		},
		"Equal": {
			reason:    "equal items mean what one means, and the first is where others may read it",
			container: "env: [{name: A, value: one}, {name: B, value: $(A)}, {name: A, value: one}]",
			want:      "env: [{name: A, value: one}, {name: B, value: $(A)}]",
			mends:     []string{`spec.containers[0].env[2]: repeats item 0 (counted from 0) and is left out`},
		},
		"ReadBetween": {
			reason:    "B has the first value, and nothing says so without it",
			container: "env: [{name: A, value: one}, {name: B, value: $(A)}, {name: A, value: two}]",
			want:      "env: [{name: A, value: one}, {name: B, value: $(A)}, {name: A, value: two}]",
			left:      1,
		},
		"ReadsItself": {
			reason:    "the second value has the first in it",
			container: "env: [{name: A, value: one}, {name: A, value: '$(A):two'}]",
			want:      "env: [{name: A, value: one}, {name: A, value: '$(A):two'}]",
			left:      1,
		},
		"Optional": {
			reason:    "without the ConfigMap the first value counts",
			container: "env: [{name: A, value: one}, {name: A, valueFrom: {configMapKeyRef: {name: a, key: b, optional: true}}}]",
			want:      "env: [{name: A, value: one}, {name: A, valueFrom: {configMapKeyRef: {name: a, key: b, optional: true}}}]",
			left:      1,
		},
		"Ports": {
			reason:    "ports that say the same, with and without the default",
			container: "ports: [{containerPort: 80, name: a}, {containerPort: 80, protocol: TCP, name: a}, {containerPort: 80, protocol: UDP}]",
			want:      "ports: [{containerPort: 80, name: a}, {containerPort: 80, protocol: UDP}]",
			mends:     []string{`spec.containers[0].ports[1]: repeats item 0 (counted from 0) and is left out`},
		},
		"PortNames": {
			reason:    "both names may be meant",
			container: "ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]",
			want:      "ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}]",
			left:      1,
		},
		"PortNamesOfHelm": {
			reason:    "Helm has accepted them already: the first one stays",
			asHelm:    true,
			container: "ports: [{containerPort: 80, name: a}, {containerPort: 80, name: b}, {containerPort: 80, name: c, protocol: UDP}]",
			want:      "ports: [{containerPort: 80, name: a}, {containerPort: 80, name: c, protocol: UDP}]",
			mends:     []string{`spec.containers[0].ports[1]: is the port of item 0 (counted from 0) with another name and is left out: a Service or a probe that refers to this name finds no port`},
		},
		"Mounts": {
			reason:    "a Pod with it twice could not be created",
			container: "volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a}]",
			want:      "volumeMounts: [{name: a, mountPath: /a}, {name: a, mountPath: /a}]",
			left:      1,
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			parsed := object(t, pod(tc.container))
			kind := types.TypeOf(parsed.GroupVersionKind())
			decoded, err := Decode(parsed.JSON)
			if err != nil {
				t.Fatal(err)
			}
			var mends []string
			for _, mend := range kind.Mend(decoded, tc.asHelm) {
				mends = append(mends, mend.Path.String()+": "+mend.Problem)
			}
			if diff := cmp.Diff(tc.mends, mends); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			got, err := yaml.Marshal(decoded)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Decode(object(t, pod(tc.want)).JSON)
			if err != nil {
				t.Fatal(err)
			}
			wanted, err := yaml.Marshal(want)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(wanted), string(got)); diff != "" {
				t.Errorf("%s: -want, +got:\n%s", tc.reason, diff)
			}
			if left := kind.walk(decoded, nil); len(left.List) != tc.left {
				t.Errorf("%s: %d findings are left, want %d: %v", tc.reason, len(left.List), tc.left, left.List)
			}
		})
	}
}
