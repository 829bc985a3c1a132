// Package words has the texts about a CustomResourceDefinition that no longer accepts a value. The
// notes of a diff and crdsafety use the same texts. The texts are formats with arguments for users.
package words

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Texts about a property, after its path.
const (
	TypeChanges    = "changes its type from %s to %s"
	MustBeOfType   = "must be of type %s"
	FieldRemoved   = "is removed: its content is dropped"
	NowRequired    = "is now required"
	OnlySome       = "allows only some values: %s"
	NoLongerAllows = "no longer allows %s"
	// GetsBound and ChangesBound have the name of a bound, such as maximum, and its values as
	// arguments.
	GetsBound    = "gets %s %v"
	ChangesBound = "changes %s from %v to %v"
	// Gets and Changes have the name of a keyword whose value is not compared, such as pattern.
	Gets    = "gets %s"
	Changes = "changes its %s"
	// Loses is for keywords whose removal also changes objects: default, oneOf.
	Loses = "loses its %s"
)

// Texts about a definition.
const (
	ScopeChanges         = "its scope changes from %s to %s"
	StoredVersionRemoved = "version %s is removed, but objects are stored in it: the API server refuses that while status.storedVersions lists it"
)

// StoredAdvice returns the steps that remove a version from a definition's stored versions; left
// are the versions that remain.
func StoredAdvice(definition string, left []string) string {
	encoded, err := json.Marshal(left)
	if err != nil || len(left) == 0 {
		encoded = []byte("[...]")
	}
	return fmt.Sprintf("store the objects in another version (kubectl get %[1]s -A -o json | kubectl replace -f -), then remove the version from status.storedVersions "+
		"(kubectl patch crd %[1]s --subresource=status --type=merge -p '{\"status\":{\"storedVersions\":%[2]s}}')", definition, encoded)
}

const maxListed = 12

// List joins the first items, and adds the number of omitted items.
func List(things []string) string {
	shown := things[:min(len(things), maxListed):min(len(things), maxListed)]
	if over := len(things) - maxListed; over > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", over))
	}
	return strings.Join(shown, ", ")
}
