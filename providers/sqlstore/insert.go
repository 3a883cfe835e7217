package sqlstore

import (
	"strconv"
	"strings"
)

// chunkRows are the numbers of rows that one statement takes, so that few statements have to be prepared. They stay
// small since SQLite's driver looks for each value among all values of the statement.
var chunkRows = []int{32, 8, 1}

// rowsText is a statement that takes values in rows.
type rowsText struct {
	head, tail string   // what stands before and behind the rows
	types      []string // of the columns; "" = the database knows it
	texts      map[engine]map[int]string
}

// complete writes the statement for each database and number of rows.
func (t *rowsText) complete() {
	t.texts = map[engine]map[int]string{sqliteEngine: {}, postgresEngine: {}}
	for e, texts := range t.texts {
		for _, rows := range chunkRows {
			texts[rows] = t.text(e, rows)
		}
	}
}

func newTable(name, columns string) *rowsText {
	return &rowsText{head: "INSERT INTO " + name + " (" + columns + ") VALUES ", types: make([]string, strings.Count(columns, ",")+1)}
}

var (
	codesTable = newTable("authorization_codes",
		"hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id")
	familiesTable = newTable("families", "id, client_id, user_id, scopes, generation, advanced, expires, ends, revoked")
	refreshTable  = newTable("refresh_tokens", "hash, family_id, generation")
	accessTable   = newTable("access_tokens", "hash, client_id, user_id, family_id, scopes, issued, expires")
)

func init() {
	for _, t := range []*rowsText{codesTable, familiesTable, refreshTable, accessTable, takeCodes} {
		t.complete()
	}
}

// text returns the statement for so many rows. SQLite's driver compares parameters that have a name by it, which
// costs more than their number.
func (t *rowsText) text(e engine, rows int) string {
	var b strings.Builder
	b.WriteString(t.head)
	for i := range rows * len(t.types) {
		column := i % len(t.types)
		switch {
		case i == 0:
			b.WriteByte('(')
		case column == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		if e == sqliteEngine {
			b.WriteByte('?')
			continue
		}
		b.WriteByte('$')
		b.WriteString(strconv.Itoa(i + 1))
		if t.types[column] != "" {
			b.WriteString("::" + t.types[column])
		}
	}
	b.WriteByte(')')
	b.WriteString(t.tail)
	return b.String()
}

// inChunks puts the values of rows into b.args, as many as the chunks allow, and lets execute execute the statement for them. add appends a
// row's values.
func inChunks[T any](b *batch, t *rowsText, rows []T, add func([]any, *T) []any, execute func(text string) error) error {
	for _, n := range chunkRows {
		for ; len(rows) >= n; rows = rows[n:] {
			b.args = b.args[:0]
			for i := range n {
				b.args = add(b.args, &rows[i])
			}
			if err := execute(t.texts[b.conn.pools.engine][n]); err != nil {
				return err
			}
		}
	}
	return nil
}

// insertAll inserts rows.
func insertAll[T any](b *batch, t *rowsText, rows []T, add func([]any, *T) []any) error {
	return inChunks(b, t, rows, add, func(text string) error {
		_, err := b.conn.exec(b.ctx, text, b.args...)
		return err
	})
}
