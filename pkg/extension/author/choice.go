package author

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

// mostFormer bounds the sources that a choice remembers.
const mostFormer = 8

// Choice is a write by which a user chose the version to install.
type Choice struct {
	// Generation is the generation after the write, and Time the time of the write.
	Generation int64     `json:"generation"`
	Time       time.Time `json:"time"`
	// Left is set if the write restores an earlier source: the time at which that source was
	// replaced. If no revision was created since Left, the write does not count as a choice.
	Left time.Time `json:"left,omitzero"`
	// Former are the sources that were replaced, the oldest first.
	Former []Former `json:"former,omitempty"`
}

// Former is a source that the object had.
type Former struct {
	// Source is its digest.
	Source string `json:"source"`
	// Left is the time at which it was replaced.
	Left time.Time `json:"left"`
}

// Choose returns the choice after a write that leaves a generation. Former is the choice before it,
// nil when unknown. Was and is are spec.source, as JSON has them; created is true if the write
// creates the object.
func Choose(former *Choice, created bool, was, is any, generation int64, now time.Time) *Choice {
	if created {
		return &Choice{Generation: generation, Time: now}
	}
	if equality.Semantic.DeepEqual(was, is) {
		return former
	}
	choice, before, after := &Choice{Generation: generation, Time: now}, digestOf(was), digestOf(is)
	if former != nil {
		for _, one := range former.Former {
			if one.Source == after {
				choice.Left = one.Left
			}
		}
		choice.Former = slices.DeleteFunc(slices.Clone(former.Former), func(one Former) bool { return one.Source == before })
	}
	choice.Former = append(choice.Former, Former{before, now})
	choice.Former = choice.Former[max(0, len(choice.Former)-mostFormer):]
	return choice
}

// digestOf is the digest of a value of JSON. Maps are encoded in the order of their keys.
func digestOf(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return "" // no JSON: nothing was admitted that is none
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
