package main

import (
	"errors"
	"fmt"

	"github.com/google/cel-go/cel"
)

// kustomization is what counts here of one of Flux.
type kustomization struct {
	Spec struct {
		HealthCheckExprs []expressions `json:"healthCheckExprs"`
	} `json:"spec"`
}

// expressions say in CEL how healthy an object of a kind is.
type expressions struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	InProgress string `json:"inProgress"`
	Failed     string `json:"failed"`
	Current    string `json:"current"`
}

func (k kustomization) of(apiVersion, kind string) expressions {
	for _, one := range k.Spec.HealthCheckExprs {
		if one.APIVersion == apiVersion && one.Kind == kind {
			return one
		}
	}
	return expressions{}
}

// evaluate asks in the order in which Flux does, which has no other answer than InProgress
// when nothing holds.
func (e expressions) evaluate(object map[string]any) (string, error) {
	if e.Current == "" {
		return "", errors.New("there are no expressions for this kind")
	}
	for _, one := range []struct{ answer, expression string }{{"InProgress", e.InProgress}, {"Failed", e.Failed}, {"Current", e.Current}} {
		holds, err := evaluate(one.expression, object)
		if err != nil {
			return "", fmt.Errorf("%s: %w", one.answer, err)
		}
		if holds {
			return one.answer, nil
		}
	}
	return "InProgress", nil
}

func evaluate(expression string, object map[string]any) (bool, error) {
	fields := map[string]any{}
	var variables []cel.EnvOption
	for _, name := range []string{"apiVersion", "kind", "metadata", "spec", "status"} {
		variables = append(variables, cel.Variable(name, cel.DynType))
		if object[name] != nil {
			fields[name] = object[name]
		}
	}
	environment, err := cel.NewEnv(variables...)
	if err != nil {
		return false, err
	}
	compiled, issues := environment.Compile(expression)
	if issues != nil && issues.Err() != nil {
		return false, issues.Err()
	}
	program, err := environment.Program(compiled)
	if err != nil {
		return false, err
	}
	result, _, err := program.Eval(fields)
	if err != nil {
		return false, err
	}
	holds, ok := result.Value().(bool)
	if !ok {
		return false, fmt.Errorf("the answer is %v, and not a bool", result)
	}
	return holds, nil
}
