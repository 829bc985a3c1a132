// Package governance is what a ConfigurationPlan may do: its states, which plan an
// approval is for, and what its conditions say. All of it is a function of values;
// what reads the cluster and acts on it is package controller/plan.
package governance
