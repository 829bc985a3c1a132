// Package maintenancewindow has the type MaintenanceWindow, which says when upgrades that nobody
// asked for just now may begin, and the rule over all of them. It knows no client and no clock.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	validate.go    what the schema cannot say
//	rule.go        whether an upgrade of one extension may begin, and when next
package maintenancewindow
