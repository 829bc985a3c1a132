// Package governance has the rules of ConfigurationPlans: their states, the plan that an approval
// is for, and the conditions. All of them are functions of values. Package controller/plan reads
// the cluster and acts on the results.
package governance
