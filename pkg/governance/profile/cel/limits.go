package cel

// Bounds of definitions and of their results. docs/reference/configuration-profile-definitions.md
// lists them for users.
const (
	// maxSpecBytes bounds a definition as JSON.
	maxSpecBytes = 64 << 10
	// maxExpressionBytes bounds one expression.
	maxExpressionBytes = 8 << 10
	maxTextBytes       = 1 << 10
	maxRequirements    = 16
	maxFields          = 32
	maxVariables       = 32
	maxChecks          = 16
	maxItems           = 16
	maxWaits           = 8

	// maxUnits bounds the cost of all expressions of a profile for one computation: about 0.2 s
	// (see package expression). maxWaitUnits bounds one evaluation of a wait.
	maxUnits     = 2_000_000
	maxWaitUnits = 500_000

	// maxObjectBytes bounds the object of an item, as JSON. maxNotes and maxNoteBytes bound its
	// notes. Longer notes are shortened.
	maxObjectBytes = 256 << 10
	maxNotes       = 16
	maxNoteBytes   = 512
)
