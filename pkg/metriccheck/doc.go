// Package metriccheck has the type MetricCheck, a question to a metric service by which a rollout is
// judged, and the rule over its answers. Clients and clocks are passed in.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	ask.go         one question, and what its answer means
//	judge.go       what the answers mean for a rollout
package metriccheck
