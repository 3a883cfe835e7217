// Package bulk looks up the addresses and domains of files of any size in constant memory.
//
// A splitter cuts the input into chunks of whole rows. Workers find the queries of a chunk, ask a
// Source, and render the chunk's output. One writer writes the chunks in the order of the input.
package bulk
