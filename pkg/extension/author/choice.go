package author

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
)

const mostFormer = 8

// Choice is the write by which a user chose the version to install.
type Choice struct {
	// Generation is the object's generation after the write, and Time the time of the write.
	Generation int64     `json:"generation"`
	Time       time.Time `json:"time"`
	// Left is set if the write restores an earlier source. It is the time at which that source was
	// replaced. If no revision was created since Left, the write does not count as a choice.
	Left time.Time `json:"left,omitzero"`
	// Former are the replaced sources, oldest first.
	Former []Former `json:"former,omitempty"`
}

// Former is an earlier source of the object.
type Former struct {
	// Source is the digest of the source.
	Source string `json:"source"`
	// Left is the time at which the source was replaced.
	Left time.Time `json:"left"`
}

// Choose returns the choice after a write with this resulting generation. Former is the choice
// before it, nil if unknown. Was and is are spec.source before and after the write, as JSON values.
// Created is true if the write creates the object.
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

// digestOf returns the digest of a JSON value. Maps are encoded with sorted keys.
func digestOf(value any) string {
	content, err := json.Marshal(value)
	if err != nil {
		return "" // impossible: kube-apiserver admits only JSON
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:8])
}
