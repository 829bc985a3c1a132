package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"helm.sh/helm/v4/pkg/action"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/kubernetes/scheme"
)

// reconcile reads every object of a manifest, and repairs differences.
func reconcile(configuration *action.Configuration, manifest string) error {
	all, err := configuration.KubeClient.Build(strings.NewReader(manifest), false)
	if err != nil {
		return fmt.Errorf("reading the manifest: %w", err)
	}
	for _, wanted := range all {
		if err := putRight(wanted); err != nil {
			return fmt.Errorf("%s %s: %w", wanted.Mapping.GroupVersionKind.Kind, wanted.Name, err)
		}
	}
	return nil
}

func putRight(wanted *resource.Info) error {
	helper := resource.NewHelper(wanted.Client, wanted.Mapping)
	live, err := helper.Get(wanted.Namespace, wanted.Name)
	if apierrors.IsNotFound(err) {
		_, err := helper.Create(wanted.Namespace, true, wanted.Object)
		return err
	}
	if err != nil {
		return err
	}
	is, err := json.Marshal(live)
	if err != nil {
		return err
	}
	should, err := json.Marshal(wanted.Object)
	if err != nil {
		return err
	}
	typed, err := scheme.Scheme.New(wanted.Mapping.GroupVersionKind)
	if err != nil {
		return err
	}
	fields, err := strategicpatch.NewPatchMetaFromStruct(typed)
	if err != nil {
		return err
	}
	patch, err := strategicpatch.CreateThreeWayMergePatch(should, should, is, fields, true)
	if err != nil || string(patch) == "{}" {
		return err
	}
	_, err = helper.Patch(wanted.Namespace, wanted.Name, types.StrategicMergePatchType, patch, nil)
	return err
}
