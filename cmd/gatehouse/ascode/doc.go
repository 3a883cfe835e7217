// Package ascode reads and writes the files that describe clients and resources, and compares them
// with what a server has.
package ascode
