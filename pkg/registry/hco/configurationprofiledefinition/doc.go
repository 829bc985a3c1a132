// Package configurationprofiledefinition serves the profile definitions that users write: stored
// objects, and a subresource that evaluates a definition.
package configurationprofiledefinition
