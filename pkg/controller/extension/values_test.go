package extension

import (
	"context"
	"maps"
	"strconv"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/penstock-project/penstock/pkg/extension"
)

// valueObjects is a fake with one object; version 0 means that it does not exist.
type valueObjects struct {
	mu      sync.Mutex
	data    map[string][]byte
	version int
	told    func(version string)
}

func (s *valueObjects) Data(context.Context, schema.GroupVersionResource, string, string) (map[string][]byte, string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.version == 0 {
		return nil, "", nil
	}
	return maps.Clone(s.data), strconv.Itoa(s.version), nil
}

func (s *valueObjects) Follow(ctx context.Context, _ schema.GroupVersionResource, _, _ string, changed func(version string)) {
	s.mu.Lock()
	s.told = changed
	s.mu.Unlock()
	<-ctx.Done()
}

func (s *valueObjects) edit(value string) {
	s.mu.Lock()
	s.version++
	s.data = map[string][]byte{"values.yaml": []byte("deploymentConfig: {env: [{name: LEVEL, value: " + value + "}]}")}
	told, version := s.told, strconv.Itoa(s.version)
	s.mu.Unlock()
	if told != nil {
		told(version)
	}
}

const fromSettings = "[{kind: ConfigMap, name: settings}]"

// TestValuesChange: several edits make one upgrade, which waits for its window and is created as
// the ServiceAccount.
func TestValuesChange(t *testing.T) {
	p := automatic(t)
	p.values.edit("one")
	p.set(extension.ValuesFromAnnotation, fromSettings)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.0.0 alice")
	p.succeed("lamp-2")
	p.await("it is installed", func() bool { return p.condition("Ready") == "True/Succeeded" && p.shown() == "2 Active 1.0.0 alice" })
	p.windows.set(always)
	p.values.edit("two")
	p.values.edit("three")
	p.await("the upgrade waits", func() bool { return strings.Contains(p.message("Ready"), "waits: MaintenanceWindow nights is closed") })
	p.windows.set(nil)
	p.awaitRevisions("2 Active 1.0.0 alice, 3 Active 1.0.0 system:serviceaccount:lamps:installer")
	p.succeed("lamp-3")
	p.settle()
	if shown := p.shown(); shown != "3 Active 1.0.0 system:serviceaccount:lamps:installer" {
		t.Errorf("there is %s", shown)
	}
}

// TestValuesWithoutRight: the installed content stays if the author lost the right to get the
// object, or the object lacks the key.
func TestValuesWithoutRight(t *testing.T) {
	p := automatic(t)
	p.values.edit("one")
	p.set(extension.ValuesFromAnnotation, fromSettings)
	p.awaitRevisions("1 Active 1.0.0 alice, 2 Active 1.0.0 alice")
	p.succeed("lamp-2")
	p.lack("get")
	p.values.edit("two")
	p.await("alice cannot get it", func() bool {
		return p.condition("Ready") == "True/Succeeded" && strings.Contains(p.message("Ready"), "alice wrote the extension and cannot get configmaps lamps/settings")
	})
	p.lack()
	p.values.mu.Lock()
	p.values.data, p.values.version = nil, 9
	told := p.values.told
	p.values.mu.Unlock()
	told("9")
	p.await("the key is gone", func() bool {
		return p.condition("Ready") == "True/Succeeded" && strings.Contains(p.message("Ready"), "ConfigMap lamps/settings has no key values.yaml")
	})
	if shown := p.shown(); shown != "2 Active 1.0.0 alice" {
		t.Errorf("there is %s", shown)
	}
	p.set(extension.ValuesFromAnnotation, "[{kind: Secret, name: settings, key: other}]")
	p.await("the write of alice came to nothing", func() bool { return p.condition("Ready") == "False/InvalidConfiguration" })
}
