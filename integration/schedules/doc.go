// Package schedules explores the orders of requests to sources on servers with package
// internal/explore, which drives each source behind the transport of its driver. For tests only.
package schedules
