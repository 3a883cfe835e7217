// Package emulator stands in for ip-api.com in tests of the whole service. It is written from the public description of
// that upstream alone and shares no code with package sim, so that a misunderstanding of the one is not hidden by the
// other.
//
// It counts budgets in windows that start with the first request after the last window, and everything that a client
// must not do: requests while the budget was empty, domains in a batch, batches of more than 100, unknown paths.
package emulator
