package geo

// AppendQuoted appends s as a JSON string (RFC 8259 section 7), bytes that are not UTF-8 as U+FFFD.
func AppendQuoted(dst []byte, s string) []byte {
	return dst
}

// AppendJSON appends the result as it stands in an answer behind the value of "query": from the comma before "ip" to
// the closing brace of the whole. Every documented member is there.
func (r *Result) AppendJSON(dst []byte) []byte {
	return dst
}
