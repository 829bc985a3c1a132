package main

import (
	"context"
	"fmt"

	"github.com/fluxcd/pkg/apis/kustomize"
	"github.com/fluxcd/pkg/runtime/cel"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// kustomization has the fields of Flux's Kustomization that count here.
type kustomization struct {
	Spec struct {
		HealthCheckExprs []kustomize.CustomHealthCheck `json:"healthCheckExprs"`
	} `json:"spec"`
}

// judge returns the status that Flux's own evaluator gives an object.
func (k kustomization) judge(object *unstructured.Unstructured) (string, error) {
	for _, check := range k.Spec.HealthCheckExprs {
		if check.APIVersion != object.GetAPIVersion() || check.Kind != object.GetKind() {
			continue
		}
		evaluator, err := cel.NewStatusEvaluator(&check.HealthCheckExpressions)
		if err != nil {
			return "", err
		}
		result, err := evaluator.Evaluate(context.Background(), object)
		if err != nil {
			return "", err
		}
		return string(result.Status), nil
	}
	return "", fmt.Errorf("there are no expressions for %s", object.GetKind())
}
