// Package upstream tests the contract in which gatehouse is the consumer. Its pact with ip-api pins
// what providers/ipapi relies on. The simulator must fulfil it too, so that both stay alike. The
// tests need the build tag pact.
package upstream
