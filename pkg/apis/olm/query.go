package olm

import (
	"fmt"
	"net/url"
)

// QueryBool is a parameter of a request that is true or false, and false when it is not
// there. Any other value, such as "no", is an error.
func QueryBool(query url.Values, name string) (bool, error) {
	values := query[name]
	if len(values) == 0 {
		return false, nil
	}
	if value := values[0]; value != "true" && value != "false" {
		return false, fmt.Errorf("%s=%q: want true or false", name, value)
	}
	return values[0] == "true", nil
}
