package ratelimit

// Remembered returns how many callers t remembers, in all widths.
func (t *Throttle) Remembered() (n int) {
	for _, pace := range t.paces {
		n += pace.paid.Len()
	}
	return n
}
