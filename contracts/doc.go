// Package contracts checks gatehouse against the contracts of its client programs. A Provider runs the
// real service, with a new fixture for each interaction of a pact. A fixture can be put into every state
// of the Catalogue.
package contracts
