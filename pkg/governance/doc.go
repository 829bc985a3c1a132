// Package governance has the rules of ConfigurationPlans: their states, which plan an
// approval is for, and what the conditions say. All of it are functions of values;
// package controller/plan reads the cluster and acts on it.
package governance
