module github.com/multilock/go/scripts/benchmark/peers/go

go 1.25.0

replace github.com/multilock/go => ../../../..

require (
	github.com/gofrs/flock v0.13.1
	github.com/multilock/go v0.0.0-00010101000000-000000000000
)

require golang.org/x/sys v0.47.0 // indirect
