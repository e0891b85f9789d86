// Package cloudshell is the lock on a reservation ("sandbox") of Quali CloudShell:
// the reservation mutex, over the automation API that every CloudShell has.
//
// A script takes that mutex by adding a service with the alias MUTEX, which the
// server allows once, and gives it back by removing it. Scripts that do so and
// this package exclude each other. Among those that use this package more is
// guaranteed: a holder is known by a token of its own, gives signs of life, knows
// when it has lost, can be taken over when it is dead, and nobody ever reaches a
// successor's lock, however late a request is carried out. See docs/cloudshell.md
// for how, and for what cannot be promised.
package cloudshell
