// Package contracts holds gatehouse to what client programs expect of it. A Provider is the real service, in a new fixture
// for each interaction of a pact, that can be put into every state of the Catalogue.
package contracts
