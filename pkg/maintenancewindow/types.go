package maintenancewindow

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is that of MaintenanceWindows.
var Resource = schema.GroupVersionResource{Group: "penstock.dev", Version: "v1alpha1", Resource: "maintenancewindows"}

// Kind is that of MaintenanceWindows.
var Kind = Resource.GroupVersion().WithKind("MaintenanceWindow")

// Types of windows.
const (
	// TypeAllow: while it is closed, upgrades of its extensions wait, unless another one of this
	// type is open.
	TypeAllow = "Allow"
	// TypeDeny: while it is open, upgrades of its extensions wait. It counts more than TypeAllow.
	TypeDeny = "Deny"
)

// MaintenanceWindow is a time for upgrades, or one without them.
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
	// Schedule is when the window opens, as cron has it, read in TimeZone.
	Schedule string `json:"schedule,omitempty"`
	// TimeZone is a name of the IANA database; empty is UTC.
	TimeZone string `json:"timeZone,omitempty"`
	// Duration is how long it is open each time.
	Duration *metav1.Duration `json:"duration,omitempty"`
	// Start and End are those of a window that opens once.
	Start *metav1.Time `json:"start,omitempty"`
	End   *metav1.Time `json:"end,omitempty"`
	// ExtensionSelector chooses ClusterExtensions by their labels; nil is all.
	ExtensionSelector *metav1.LabelSelector `json:"extensionSelector,omitempty"`
}

// Status says when the window is open.
type Status struct {
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// OpensAt and ClosesAt are those of the time that is open, or else of the next one; nil
	// when there is none any more.
	OpensAt  *metav1.Time `json:"opensAt,omitempty"`
	ClosesAt *metav1.Time `json:"closesAt,omitempty"`
}

// Conditions of a MaintenanceWindow.
const (
	// ConditionAccepted is False while the window cannot be read: upgrades of its extensions wait
	// then.
	ConditionAccepted = "Accepted"
	// ConditionOpen is True while the window is open.
	ConditionOpen = "Open"
)

// From reads a MaintenanceWindow.
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
