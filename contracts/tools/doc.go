// Package tools tests the contracts with other programs, which npm installs here. It also runs the
// commands of the guide for client teams. It needs the build tag pact.
package tools
