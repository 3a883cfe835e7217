package contracts

import (
	"embed"
	"sync"
)

//go:embed pacts/*.json
var pactFiles embed.FS

// Own returns the pacts with gatehouse of this repository. They must not be changed.
var Own = sync.OnceValue(func() (all []*Pact) {
	files, err := pactFiles.ReadDir("pacts")
	if err != nil {
		panic(err)
	}
	for _, file := range files {
		data, err := pactFiles.ReadFile("pacts/" + file.Name())
		if err != nil {
			panic(err)
		}
		p, err := ReadPact(data, file.Name())
		if err != nil {
			panic(err) // tests read them too
		}
		if p.Provider == "gatehouse" {
			all = append(all, p)
		}
	}
	return all
})
