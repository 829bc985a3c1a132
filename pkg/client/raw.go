package client

import "k8s.io/client-go/rest"

// Raw returns the body of an answer. Its error has the message of the server's Status, instead of
// the generic text of rest.Result.Raw.
func Raw(result rest.Result) ([]byte, error) {
	raw, _ := result.Raw()
	return raw, result.Error()
}
