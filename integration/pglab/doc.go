// Package pglab runs PostgreSQL for tests: servers of Debian's package that can be killed, restarted
// and promoted, with standbys and PgBouncer, and a proxy that counts requests, delays them, and loses
// them or their replies.
package pglab
