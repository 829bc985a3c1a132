// Package maintenancewindow has the type MaintenanceWindow, which says when automatic upgrades may
// begin, and the rule over all windows. It knows no client and no clock.
//
//	types.go       the type
//	definition.go  its CustomResourceDefinition
//	validate.go    the checks that the schema cannot make
//	rule.go        whether an upgrade of one extension may begin, and when next
package maintenancewindow
