// Package pglab is PostgreSQL for tests: servers of Debian's package that can be killed, started
// anew and promoted, with standbys and PgBouncer, and a proxy that counts requests, delays them,
// and loses them or their answers.
package pglab
