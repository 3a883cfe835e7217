// Package pacttest is for consumer tests: it tries one interaction after another against a mock of the provider and keeps
// what was expected as a pact file. The build tag pact is needed.
package pacttest
