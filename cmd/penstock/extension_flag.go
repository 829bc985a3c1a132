package main

import "github.com/spf13/pflag"

// extensionFlag says of which extension a command speaks.
const extensionFlag = "extension"

// normalizeExtension makes --name and --chain, as the flag was called before, mean
// --extension.
func normalizeExtension(_ *pflag.FlagSet, name string) pflag.NormalizedName {
	if name == "name" || name == "chain" {
		name = extensionFlag
	}
	return pflag.NormalizedName(name)
}
