package client

import "k8s.io/client-go/rest"

// Raw is the body of an answer. The error has the message of the Status that the server sent, in
// place of the generic words of rest.Result.Raw.
func Raw(result rest.Result) ([]byte, error) {
	raw, _ := result.Raw()
	return raw, result.Error()
}
