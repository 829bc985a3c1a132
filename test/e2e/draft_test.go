//go:build integration

package e2e_test

import (
	"github.com/penstock-project/penstock/test/framework/drafts"
	"github.com/penstock-project/penstock/test/framework/objects"
)

// object is a manifest. draft is a ClusterExtensionRevision as a user writes it.
type (
	object = drafts.Object
	draft  = drafts.Draft
)

// revision drafts the revision <extension>-<number>.
func revision(extension string, number int) draft { return drafts.Revision(extension, number) }

func manifest(apiVersion, kind, namespace, name string) object {
	return objects.New(apiVersion, kind, namespace, name)
}

// configMap returns a ConfigMap. Data has the form key=value.
func configMap(namespace, name string, data ...string) object {
	return objects.ConfigMap(namespace, name, data...)
}

func secret(namespace, name, password string) object {
	return objects.Secret(namespace, name, "password="+password)
}

func deployment(namespace, name, image string) object {
	return objects.Deployment(namespace, name, image)
}

// definition returns the definition of a namespaced kind in the group <plural>.example.com.
func definition(kind string) object { return drafts.Definition(kind) }

// instance returns an instance of such a kind.
func instance(kind, namespace, name string) object { return drafts.Instance(kind, namespace, name) }
