// Package verify verifies the interactions of pacts one by one. It reports what was expected, what
// came and where. With the build tag pact it is linked with libpact_ffi, which then can compare too.
package verify
