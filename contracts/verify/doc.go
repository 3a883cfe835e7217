// Package verify tries the interactions of pacts one by one and says what was expected, what came and where. It is linked
// with libpact_ffi, and so has the build tag pact.
package verify
