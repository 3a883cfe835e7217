// Package httpedge is the HTTP server of gatehouse, on fasthttp: a public listener with the
// documented endpoints and an admin listener for operators. It routes requests, counts and logs
// them, and knows the client's address; it decides nothing about lookups, tokens or users.
//
// Each group of endpoints is a package below: lookups, oauthapi, signin and me on the public
// listener, adminapi on the admin one. A group returns rows for the table of routes and does not
// know the server. Groups share package endpoint, whose ProblemOf is the one map from an error to a
// status and a message, and groups of pages share package visit.
//
// Nothing that a request says is logged or becomes a metric: not its path, query, headers, nor the
// addresses it comes from or asks about. The memory of a request is valid until its handler
// returns; the services copy what they keep.
package httpedge
