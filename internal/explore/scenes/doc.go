// Package scenes plays the lock, its results, its numbers and its barrier with package explore:
// tests alone. They are a package of their own so that a mutant is compiled in a moment.
package scenes
