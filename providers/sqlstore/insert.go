package sqlstore

import (
	"slices"
	"strconv"
	"strings"
)

// chunkRows are the possible numbers of rows in a statement on SQLite: few numbers, so that few
// statements are prepared. They are small because SQLite's driver takes quadratic time in the
// number of values.
var chunkRows = []int{32, 16, 8, 4, 2, 1}

// rowsText is a statement with rows of values. On SQLite it uses VALUES, in chunks. On PostgreSQL
// it has one array for each column, so one statement takes any number of rows.
type rowsText struct {
	head, tail string   // text before and after the rows, whose columns are column1, column2, …
	types      []string // column types on PostgreSQL
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
(hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id,
client_epoch, user_epoch, session, details) `, "",
		"bytea", "text", "bigint", "text", "bigint", "boolean", "text", "bigint", "bigint", "text", "bigint", "bigint",
		"bytea", "text")
	familiesTable = newRowsText(`INSERT INTO families
(id, client_id, user_id, scopes, generation, advanced, expires, ends, access_expires, revoked, session, details) `, "",
		"text", "text", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint", "bigint", "boolean", "bytea", "text")
	refreshTable = newRowsText("INSERT INTO refresh_tokens (hash, family_id, generation) ", "",
		"bytea", "text", "bigint")
)

// values returns a VALUES clause for rows. Its parameters have no names, because SQLite's driver
// compares names, which takes longer.
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
	return "SELECT * FROM unnest(" + strings.Join(arrays, ", ") + ") AS u (" +
		strings.Join(names, ", ") + ")"
}

// inRows calls execute for all rows, once or in chunks. add appends the values of a row.
func inRows[T any](b *batch, t *rowsText, rows []T, add func([]any, *T) []any,
	execute func(text string, args []any) error) error {
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

// rowValues writes the values of rows, row by row, into the batch's buffer.
func rowValues[T any](b *batch, rows []T, add func([]any, *T) []any) []any {
	b.args = b.args[:0]
	for i := range rows {
		b.args = add(b.args, &rows[i])
	}
	return b.args
}

// byColumn converts values from rows to one array for each column.
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
