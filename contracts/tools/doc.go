// Package tools tests the contracts with programs of others, which npm installs here. It needs the
// build tag pact.
package tools
