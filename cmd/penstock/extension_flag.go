package main

// extensionFlag says of which extension a command speaks.
const extensionFlag = "extension"
