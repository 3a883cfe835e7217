// Package httpedge is the HTTP face of gatehouse: a public server with the documented endpoints and an admin server
// for operators, both on fasthttp. It turns requests into calls of lookup.Service and outcomes into statuses, headers
// and JSON; it decides nothing about addresses or domains.
//
// What a request says is never logged and never becomes a metric: not its path, its query, its headers, nor the
// addresses it comes from or asks about. Memory of a request is only valid until its handler returns; System copies
// what it keeps.
package httpedge
