// Package pacttest helps consumer tests. It runs each interaction against a mock of the provider
// and writes the pact file. It needs the build tag pact.
package pacttest
