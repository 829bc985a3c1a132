package olm

// Manifest is any Kubernetes object, as the JSON it was sent as.
type Manifest struct {
	// Raw is the object in JSON.
	Raw []byte
}
