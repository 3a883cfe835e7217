package ratelimit

// Remembered returns how many callers t remembers, in all widths.
func (t *Throttle) Remembered() (n int) {
	for _, paid := range t.paid {
		n += paid.Len()
	}
	return n
}
