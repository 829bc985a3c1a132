// Package metriccheck has the type MetricCheck, a query to a metric service that judges a rollout,
// and the rule over the answers. Clients and clocks are passed in.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	ask.go         one query and its answer
//	judge.go       the verdict over the answers of a rollout
package metriccheck
