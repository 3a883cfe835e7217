// Package property holds tests that send requests made from the OpenAPI document, in sequences and in
// the states of the contracts, and check every response by all relations of package coverage.
package property
