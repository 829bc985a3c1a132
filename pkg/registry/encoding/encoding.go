// Package encoding contains the codecs of Penstock's API groups, for requests, answers and the
// store.
package encoding

import (
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apiserver/pkg/registry/generic"
	"k8s.io/apiserver/pkg/storage"
	"k8s.io/apiserver/pkg/storage/storagebackend"
	"k8s.io/apiserver/pkg/storage/storagebackend/factory"
	"k8s.io/client-go/tools/cache"

	"github.com/penstock-project/penstock/pkg/store"
)

// Text returns the codecs without protobuf. Penstock's types have no protobuf encoding: a client
// that requests it would get a 406 or 500 instead of JSON (kubernetes/kubernetes#86253).
func Text(codecs serializer.CodecFactory) runtime.NegotiatedSerializer {
	return text{codecs}
}

type text struct{ serializer.CodecFactory }

// SupportedMediaTypes returns JSON and YAML.
func (s text) SupportedMediaTypes() []runtime.SerializerInfo {
	var supported []runtime.SerializerInfo
	for _, info := range s.CodecFactory.SupportedMediaTypes() {
		if info.MediaType == runtime.ContentTypeJSON || info.MediaType == runtime.ContentTypeYAML {
			supported = append(supported, info)
		}
	}
	return supported
}

// Stored sets the storage format of a group: compressed JSON of one version. With its versioner,
// discovery has a storageVersionHash, which shows storage migration that objects must be rewritten.
type Stored struct {
	generic.RESTOptionsGetter
	Codecs  serializer.CodecFactory
	Version schema.GroupVersion
	// Around wraps the codec; nil means no wrapper.
	Around func(runtime.Codec) runtime.Codec
	// Placeholder returns the object that replaces an unreadable record in lists and watches.
	// Unreadable collects these records; nil collects none.
	Placeholder Placeholder
	Unreadable  *store.Unreadable
}

// GetRESTOptions returns the options with Penstock's codec.
func (s Stored) GetRESTOptions(resource schema.GroupResource, example runtime.Object) (generic.RESTOptions, error) {
	options, err := s.RESTOptionsGetter.GetRESTOptions(resource, example)
	if err != nil {
		return generic.RESTOptions{}, err
	}
	config := *options.StorageConfig
	config.Codec = answering{Codec: store.Compressed(s.Codecs.LegacyCodec(s.Version)), resource: resource}
	if s.Around != nil {
		config.Codec = s.Around(config.Codec)
	}
	records := placing{Codec: config.Codec, place: s.Placeholder, known: s.Unreadable, stored: reflect.TypeOf(example)}
	config.Codec = records
	if config.Transformer == nil {
		config.Transformer = untransformed{}
	}
	config.Transformer = keyed{Transformer: config.Transformer, records: records}
	decorate := options.Decorator
	options.Decorator = func(config *storagebackend.ConfigForResource, prefix string, key func(runtime.Object) (string, error),
		newFunc, newList func() runtime.Object, attrs storage.AttrFunc, triggers storage.IndexerFuncs, indexers *cache.Indexers) (storage.Interface, factory.DestroyFunc, error) {
		open, destroy, err := decorate(config, prefix, key, newFunc, newList, attrs, triggers, indexers)
		return guarded{Interface: open, resource: resource}, destroy, err
	}
	config.EncodeVersioner = runtime.NewMultiGroupVersioner(s.Version, schema.GroupKind{Group: s.Version.Group})
	options.StorageConfig = &config
	return options, nil
}
