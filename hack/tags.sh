# Source this file from the top of the checkout in scripts that build or test the program, so that
# tests use the build tags of the shipped program, in hack/tags. Without them everything builds and
# passes, too. But images that need a verified signature are refused, and the server is a third
# larger, because a program that can load plugins keeps every method.
export GOFLAGS="${GOFLAGS:-} -trimpath -tags=$(cat hack/tags)"
