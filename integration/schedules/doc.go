// Package schedules plays sources on servers in every order with package internal/explore, each behind
// the inner seam of its driver: tests alone.
package schedules
