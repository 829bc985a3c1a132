// Package signer records in a revision the signers of its image.
package signer

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/penstock-project/penstock/pkg/text"
)

// Record describes the verification of an image before its content was used.
type Record struct {
	// Image is the verified image, with its digest.
	Image string `json:"image,omitempty"`
	// Policy is the digest of the signature policy, and Verification the digest of the verification
	// policy. Rule names the parts of both that applied.
	Policy       string `json:"policy,omitempty"`
	Verification string `json:"verification,omitempty"`
	Rule         string `json:"rule"`
	// Signers are the keys and identities of the verified signatures, sorted. It is empty if the
	// rule requires no signature.
	Signers []string `json:"signers,omitempty"`
	// Time is the time of the verification.
	Time time.Time `json:"time"`
}

// Of returns the record if it is about an image with its digest; otherwise nil.
func (r *Record) Of(image string) *Record {
	if r == nil {
		return nil
	}
	of := *r
	of.Image = image
	return &of
}

// String returns the value of the annotation; empty without a record.
func (r *Record) String() string {
	if r == nil {
		return ""
	}
	content, err := json.Marshal(r)
	if err != nil {
		return ""
	}
	return string(content)
}

// Parse parses the value of the annotation. It returns nil for an empty or invalid value.
func Parse(value string) *Record {
	r := &Record{}
	if value == "" || json.Unmarshal([]byte(value), r) != nil {
		return nil
	}
	return r
}

// Lost describes the signers that the image of the next revision lacks; empty if it has all of
// them. before and after are annotations. Images without a record are not compared.
func Lost(before, after string) string {
	was, is := Parse(before), Parse(after)
	if was == nil {
		return ""
	}
	if is == nil {
		is = &Record{}
	}
	lost := slices.DeleteFunc(slices.Clone(was.Signers), func(one string) bool { return slices.Contains(is.Signers, one) })
	if len(lost) == 0 {
		return ""
	}
	now := "no signature was verified"
	if len(is.Signers) > 0 {
		now = "signed by " + listed(is.Signers)
	}
	return "image: " + now + ", was signed by " + listed(was.Signers)
}

func listed(signers []string) string {
	const longest = 400
	return text.Clip(strings.Join(signers, ", "), longest)
}
