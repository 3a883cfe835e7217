// Package upstream is where gatehouse itself is the consumer: its tests pin what providers/ipapi relies on, as a pact with
// ip-api, and hold the simulator to it, so that the two cannot drift apart. The tests need the build tag pact.
package upstream
