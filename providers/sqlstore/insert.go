package sqlstore

import (
	"strconv"
	"strings"
)

// chunkRows are the numbers of rows that one statement inserts, so that few statements have to be prepared. They stay
// small since SQLite's driver looks for each value among all values of the statement.
var chunkRows = []int{32, 8, 1}

// table is what is inserted into in numbers.
type table struct {
	columns int
	head    string // up to VALUES
	texts   map[engine]map[int]string
}

func newTable(name, columns string) *table {
	t := &table{
		columns: strings.Count(columns, ",") + 1,
		head:    "INSERT INTO " + name + " (" + columns + ") VALUES ",
		texts:   map[engine]map[int]string{sqliteEngine: {}, postgresEngine: {}},
	}
	for e, texts := range t.texts {
		for _, rows := range chunkRows {
			texts[rows] = t.text(e, rows)
		}
	}
	return t
}

var (
	codesTable = newTable("authorization_codes",
		"hash, client_id, user_id, redirect_uri, scopes, default_scopes, code_challenge, expires, used_at, family_id")
	familiesTable = newTable("families", "id, client_id, user_id, scopes, generation, advanced, expires, ends, revoked")
	refreshTable  = newTable("refresh_tokens", "hash, family_id, generation")
	accessTable   = newTable("access_tokens", "hash, client_id, user_id, family_id, scopes, issued, expires")
)

// text returns the statement for so many rows. SQLite's driver compares parameters that have a name by it, which
// costs more than their number.
func (t *table) text(e engine, rows int) string {
	var b strings.Builder
	b.WriteString(t.head)
	for i := range rows * t.columns {
		switch {
		case i == 0:
			b.WriteByte('(')
		case i%t.columns == 0:
			b.WriteString("), (")
		default:
			b.WriteString(", ")
		}
		if e == sqliteEngine {
			b.WriteByte('?')
		} else {
			b.WriteByte('$')
			b.WriteString(strconv.Itoa(i + 1))
		}
	}
	b.WriteByte(')')
	return b.String()
}

// insertAll inserts rows in as few statements as the chunks allow. add appends a row's values.
func insertAll[T any](b *batch, t *table, rows []T, add func([]any, *T) []any) error {
	for _, n := range chunkRows {
		for ; len(rows) >= n; rows = rows[n:] {
			b.args = b.args[:0]
			for i := range n {
				b.args = add(b.args, &rows[i])
			}
			if _, err := b.conn.exec(b.ctx, t.texts[b.conn.pools.engine][n], b.args...); err != nil {
				return err
			}
		}
	}
	return nil
}
