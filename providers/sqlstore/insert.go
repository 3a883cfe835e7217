package sqlstore

import (
	"slices"
	"strconv"
	"strings"
)

// chunkRows are the numbers of rows that one statement takes on SQLite, so that few statements have to be prepared. They stay
// small since its driver looks for each value among all values of the statement.
var chunkRows = []int{32, 16, 8, 4, 2, 1}

// rowsText is a statement that takes values in rows: on SQLite as VALUES, on PostgreSQL as one array a column, so that any number
// of rows goes there in one statement.
type rowsText struct {
	head, tail string   // what stands before and behind the rows, whose columns are called column1 and so on
	types      []string // of the columns on PostgreSQL
	sqlite     map[int]string
	postgres   string
}

func newRowsText(head, tail string, types ...string) *rowsText {
	t := &rowsText{head: head, tail: tail, types: types, sqlite: map[int]string{}}
	for _, rows := range chunkRows {
		t.sqlite[rows] = t.head + t.values(rows) + t.tail
	}
	t.postgres = t.head + t.arrays() + t.tail
	return t
}

var (
	codesTable = newRowsText(`INSERT INTO authorization_codes
(hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id) `, "",
		"bytea", "text", "bigint", "text", "bigint", "boolean", "text", "bigint", "bigint", "text")
	familiesTable = newRowsText(`INSERT INTO families
(id, client_id, user_id, scopes, generation, advanced, expires, ends, revoked) `, "",
		"text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint", "boolean")
	refreshTable = newRowsText("INSERT INTO refresh_tokens (hash, family_id, generation) ", "", "bytea", "text", "bigint")
	accessTable  = newRowsText("INSERT INTO access_tokens (hash, client_id, user_id, family_id, scopes, issued, expires) ", "",
		"bytea", "text", "bigint", "text", "bigint", "bigint", "bigint")
)

// values returns so many rows of parameters. They have no names: SQLite's driver would compare each by its own, which costs more than
// their number.
func (t *rowsText) values(rows int) string {
	row := "(?" + strings.Repeat(", ?", len(t.types)-1) + ")"
	return "VALUES " + row + strings.Repeat(", "+row, rows-1)
}

func (t *rowsText) arrays() string {
	var arrays, names []string
	for i, name := range t.types {
		number := strconv.Itoa(i + 1)
		arrays, names = append(arrays, "$"+number+"::"+name+"[]"), append(names, "column"+number)
	}
	return "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") AS u (" + strings.Join(names, ", ") + ")"
}

// inRows calls execute with the statement and its values, as often as all rows need. add appends a row's values.
func inRows[T any](b *batch, t *rowsText, rows []T, add func([]any, *T) []any, execute func(text string, args []any) error) error {
	if b.conn.pools.engine == postgresEngine && len(rows) > 0 {
		return execute(t.postgres, byColumn(rowValues(b, rows, add), len(t.types)))
	}
	for _, n := range chunkRows {
		for ; len(rows) >= n; rows = rows[n:] {
			if err := execute(t.sqlite[n], rowValues(b, rows[:n], add)); err != nil {
				return err
			}
		}
	}
	return nil
}

// rowValues puts the values of rows, one row after the other, into the batch's memory for them.
func rowValues[T any](b *batch, rows []T, add func([]any, *T) []any) []any {
	b.args = b.args[:0]
	for i := range rows {
		b.args = add(b.args, &rows[i])
	}
	return b.args
}

// byColumn returns the values of rows with so many columns, an array a column.
func byColumn(values []any, columns int) []any {
	arrays := make([]any, columns)
	for c := range arrays {
		array := make([]any, 0, len(values)/columns)
		for row := range slices.Chunk(values, columns) {
			array = append(array, row[c])
		}
		arrays[c] = array
	}
	return arrays
}

// insertAll inserts rows.
func insertAll[T any](b *batch, t *rowsText, rows []T, add func([]any, *T) []any) error {
	return inRows(b, t, rows, add, func(text string, args []any) error {
		_, err := b.conn.exec(b.ctx, text, args...)
		return err
	})
}
