// Package matching compares responses with pacts by the rules of the Pact specification, versions 1
// to 4.
package matching
