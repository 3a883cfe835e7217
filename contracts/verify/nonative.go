//go:build !pact

package verify

import "errors"

// LibraryVersion returns the version of libpact_ffi; "" = this program does not have it.
func LibraryVersion() string { return "" }

func newNative(*recorder) (engine, error) {
	return nil, errors.New("this program is built without libpact_ffi")
}
