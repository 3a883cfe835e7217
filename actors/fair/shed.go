package fair

// Shed returns how many each holder gives up so that n places become free: always one of the
// largest, and the first of several. held is what each has. Where one place would do, more become
// free at a time, so that a full room costs little.
func Shed(held []int, n int) []int {
	shed := make([]int, len(held))
	for range n {
		largest, most := 0, 0
		for i := range held {
			if left := held[i] - shed[i]; left > most {
				largest, most = i, left
			}
		}
		if most == 0 {
			break
		}
		shed[largest]++
	}
	return shed
}
