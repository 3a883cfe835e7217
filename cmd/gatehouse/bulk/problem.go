package bulk

import (
	"gatehouse/actors/geo"
)

// problem is why a row or a query has no result, with the members of an error of the HTTP
// interface.
type problem struct{ code, reason, message string }

const invalidRow = "invalid_row"

// The problems of rows.
var (
	badLength = &problem{invalidRow, "too_long", "The row is longer than 1 MiB."}
	badQuotes = &problem{invalidRow, "broken_quotes",
		"A quoted cell of the row does not end, or goes on after its closing quote."}
	badCells = &problem{invalidRow, "extra_cells", "The row has more cells than the header."}
	badJSON  = &problem{invalidRow, "malformed", "The row is not a JSON object."}
	noColumn = &problem{invalidRow, "no_column", "The row has no cell in this column."}
	noField  = &problem{invalidRow, "no_field", "The row has no text in this field."}
)

// problemOf returns the problem of an error of a query.
func problemOf(err *geo.Error) problem {
	message := "The provider cannot be reached at the moment."
	switch {
	case err.Code == geo.CodeInvalidQuery:
		message = err.Reason.Message()
	case err.Damaged:
		message = geo.DamagedMessage
	}
	return problem{string(err.Code), string(err.Reason), message}
}

// appendJSON appends the members of the error, each with a comma before it.
func (p *problem) appendJSON(dst []byte) []byte {
	dst = geo.AppendQuoted(append(dst, `,"error":`...), p.code)
	dst = geo.AppendQuoted(append(dst, `,"message":`...), p.message)
	return geo.AppendQuoted(append(dst, `,"reason":`...), p.reason)
}
