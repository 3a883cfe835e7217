// Package emulator emulates ip-api.com for tests of the whole service. It follows the upstream's
// public description and shares no code with package sim, so that an error in one is not hidden by
// the other.
//
// A budget's window starts with the first request after the last window. The emulator counts
// violations by clients: requests on an empty budget, domains in a batch, batches of more than 100,
// unknown paths.
package emulator
