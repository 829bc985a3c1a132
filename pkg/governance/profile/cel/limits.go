package cel

// Bounds of definitions, and of what they make. docs/reference/configuration-profile-definitions.md
// has them for users.
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

	// maxUnits is the cost that all expressions of a profile may have together when a plan is
	// computed: about 0.2 s (see package expression). maxWaitUnits is for one wait.
	maxUnits     = 2_000_000
	maxWaitUnits = 500_000

	// maxObjectBytes bounds what an item makes, as JSON, and maxNotes and maxNoteBytes what it
	// tells. Text that is longer is cut.
	maxObjectBytes = 256 << 10
	maxNotes       = 16
	maxNoteBytes   = 512
)
