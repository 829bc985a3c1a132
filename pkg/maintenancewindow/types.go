package maintenancewindow

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is the API resource of MaintenanceWindows.
var Resource = schema.GroupVersionResource{Group: "penstock.dev", Version: "v1alpha1", Resource: "maintenancewindows"}

// Kind is the kind of MaintenanceWindows.
var Kind = Resource.GroupVersion().WithKind("MaintenanceWindow")

// The types of windows.
const (
	// TypeAllow blocks upgrades of the selected extensions while the window is closed, unless
	// another Allow window is open.
	TypeAllow = "Allow"
	// TypeDeny blocks upgrades of the selected extensions while the window is open. It takes
	// precedence over TypeAllow.
	TypeDeny = "Deny"
)

// MaintenanceWindow is a time in which upgrades can begin, or in which they must not begin.
type MaintenanceWindow struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   Spec   `json:"spec"`
	Status Status `json:"status,omitempty,omitzero"`
}

// Spec is the part that users write: Schedule and Duration, or Start and End.
type Spec struct {
	// Type is TypeAllow or TypeDeny.
	Type string `json:"type"`
	// Schedule is a cron expression for the times at which the window opens, in TimeZone.
	Schedule string `json:"schedule,omitempty"`
	// TimeZone is a name of the IANA database; empty means UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Duration is the time that the window stays open.
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Start and End are the times of a window that opens once.
	Start *metav1.Time `json:"start,omitempty"`
	End   *metav1.Time `json:"end,omitempty"`
	// ExtensionSelector selects ClusterExtensions by their labels; nil selects all.
	ExtensionSelector *metav1.LabelSelector `json:"extensionSelector,omitempty"`
}

// Status has the next times of the window.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// OpensAt and ClosesAt are the times of the present opening, or else of the next one; nil if
	// there is none.
	OpensAt  *metav1.Time `json:"opensAt,omitempty"`
	ClosesAt *metav1.Time `json:"closesAt,omitempty"`
}

// The conditions of a MaintenanceWindow.
const (
	// ConditionAccepted is False while the window cannot be read: upgrades of its extensions then
	// wait.
	ConditionAccepted = "Accepted"
	// ConditionOpen is True while the window is open.
	ConditionOpen = "Open"
)

// From parses a MaintenanceWindow.
func From(object *unstructured.Unstructured) (*MaintenanceWindow, error) {
	read := &MaintenanceWindow{}
	content, err := json.Marshal(object.Object)
	if err == nil {
		err = json.Unmarshal(content, read)
	}
	if err != nil {
		return nil, fmt.Errorf("reading MaintenanceWindow %s: %w", object.GetName(), err)
	}
	return read, nil
}
