// Package verify verifies the interactions of pacts one by one. It reports what was expected, what
// came and where. It is linked with libpact_ffi and needs the build tag pact.
package verify
