// Package words has the texts about a CustomResourceDefinition that no longer accepts a value. The
// notes of a diff and the checks of crdsafety use the same words, so a user recognises them. The
// texts are formats; their arguments are for people.
package words

import (
	"encoding/json"
	"fmt"
	"strings"
)

// Of a property, behind its path.
const (
	TypeChanges    = "changes its type from %s to %s"
	MustBeOfType   = "must be of type %s"
	FieldRemoved   = "is removed: its content is dropped"
	NowRequired    = "is now required"
	OnlySome       = "allows only some values: %s"
	NoLongerAllows = "no longer allows %s"
	// GetsBound and ChangesBound have the name of a bound, such as maximum, and its values.
	GetsBound    = "gets %s %v"
	ChangesBound = "changes %s from %v to %v"
	// Gets and Changes have the name of a keyword that is not looked into, such as pattern.
	Gets    = "gets %s"
	Changes = "changes its %s"
	// Loses is of keywords whose loss changes objects, too: default, oneOf.
	Loses = "loses its %s"
)

// Of a definition.
const (
	ScopeChanges         = "its scope changes from %s to %s"
	StoredVersionRemoved = "version %s is removed, but objects are stored in it: the API server refuses that while status.storedVersions lists it"
)

// StoredAdvice returns the steps that remove a version of a definition from the stored versions; left
// are the versions that stay stored.
func StoredAdvice(definition string, left []string) string {
	encoded, err := json.Marshal(left)
	if err != nil || len(left) == 0 {
		encoded = []byte("[...]")
	}
	return fmt.Sprintf("store the objects in another version (kubectl get %[1]s -A -o json | kubectl replace -f -), then remove the version from status.storedVersions "+
		"(kubectl patch crd %[1]s --subresource=status --type=merge -p '{\"status\":{\"storedVersions\":%[2]s}}')", definition, encoded)
}

// maxListed bounds List.
const maxListed = 12

// List names the first of many things, and how many more there are.
func List(things []string) string {
	shown := things[:min(len(things), maxListed):min(len(things), maxListed)]
	if over := len(things) - maxListed; over > 0 {
		shown = append(shown, fmt.Sprintf("and %d more", over))
	}
	return strings.Join(shown, ", ")
}
