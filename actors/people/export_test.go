package people

// Credentials returns the names of the rows of the table of changes of credentials.
func Credentials() (names []string) {
	for _, c := range credentials {
		names = append(names, c.name)
	}
	return names
}

// Recovered is recovered.
var Recovered = recovered
