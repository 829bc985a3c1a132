package olm

// Manifest is any Kubernetes object, kept as the JSON that the client sent. It is a separate type,
// and not runtime.RawExtension, so that `kubectl explain` describes it.
type Manifest struct {
	// Raw is the object in JSON.
	Raw []byte
}
