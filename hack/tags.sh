# Sourced, from the top of the checkout, by scripts that build or test the program: what
# is tested is built with the tags of what is shipped, in hack/tags. Without them all
# builds and passes, too, but an image whose signature would have to be verified is refused,
# and the server is a third larger: a program that can load plugins keeps each method.
export GOFLAGS="${GOFLAGS:-} -trimpath -tags=$(cat hack/tags)"
