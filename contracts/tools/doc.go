// Package tools tries the contracts with programs of others, which npm installs here, and the guide for teams of client programs as
// it is written. The build tag pact is needed.
package tools
