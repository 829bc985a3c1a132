package olm

import (
	"fmt"
	"net/url"
)

// QueryBool reads a query parameter that is true or false. It returns false if the parameter is
// absent, and an error for another value, such as "no".
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
