package oauth

import (
	"fmt"
	"time"
)

// Purpose is what keys are for. The keys of each purpose rotate apart.
type Purpose string

// The purposes.
const (
	TokenKeys   Purpose = "tokens"   // seal access tokens
	FormKeys    Purpose = "forms"    // seal the forms of pages
	BrowserKeys Purpose = "browsers" // mark browsers as known to an account
	ClusterKeys Purpose = "cluster"  // certify the nodes of a cluster to each other
)

// Purposes has all purposes in the order of all lists.
var Purposes = []Purpose{TokenKeys, FormKeys, BrowserKeys, ClusterKeys}

// How long what was made with a key is valid at most. For TokenKeys the configuration says so.
const (
	FormLifetime    = time.Hour            // FormKeys: from rendering a form to sending it
	BrowserLifetime = 365 * 24 * time.Hour // BrowserKeys: from a sign-in
	ClusterLifetime = 2 * 24 * time.Hour   // ClusterKeys: longer than a node's certificate
)

// Key is a secret key that a Store keeps. It prints without its value.
type Key struct {
	Purpose Purpose
	Number  uint16 // counts from 1 for each purpose
	Secret  [32]byte
	Made    time.Time
	Expires time.Time // zero = it is the current one
}

// String returns purpose and number.
func (k Key) String() string { return fmt.Sprintf("%s key %d", k.Purpose, k.Number) }

// KeyInfo describes a stored key without its value.
type KeyInfo struct {
	Purpose Purpose
	Number  uint16
	Made    time.Time
	Expires time.Time // zero = it is the current one
	File    string    // short name of the key file that it is wrapped under
}

// KeyRotation asks for a new key.
type KeyRotation struct {
	Purpose Purpose
	Now     time.Time
	Expires time.Time // when the key before it is no longer needed
	Drop    bool      // drop all former keys at once, also when they are in use
}
