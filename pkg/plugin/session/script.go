package session

import (
	"encoding/json"
	"strings"

	"sigs.k8s.io/yaml"
)

// The marks of a script in a message of the server: manifests in one line of JSON, for kubectl
// apply.
const (
	scriptBegin = "<<'EOF'\n"
	scriptEnd   = "\nEOF"
)

// Legible returns a message with its manifests as YAML, one document for each object, so that a
// user can read them before applying. The command can still be copied.
func Legible(message string) string {
	before, rest, found := strings.Cut(message, scriptBegin)
	content, after, ends := strings.Cut(rest, scriptEnd)
	if !found || !ends {
		return message
	}
	var list struct {
		Kind  string            `json:"kind"`
		Items []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal([]byte(content), &list); err != nil {
		return message
	}
	if list.Kind != "List" {
		list.Items = []json.RawMessage{json.RawMessage(content)}
	}
	var documents []string
	for _, item := range list.Items {
		document, err := yaml.JSONToYAML(item)
		// A line of the manifests must not end the script.
		if err != nil || strings.Contains("\n"+string(document), scriptEnd+"\n") {
			return message
		}
		documents = append(documents, strings.TrimSuffix(string(document), "\n"))
	}
	return before + scriptBegin + strings.Join(documents, "\n---\n") + scriptEnd + after
}
