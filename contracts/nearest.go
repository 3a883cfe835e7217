package contracts

import (
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"

	"gatehouse/httpedge"

	"github.com/getkin/kin-openapi/openapi3"
)

// Nearest returns the name that is most similar to a wrong one; "" = none is similar. Case does not
// count.
func Nearest(wrong string, names []string) string {
	best, distance := "", max(1, len(wrong)/3)+1
	for _, name := range names {
		d := editDistance(strings.ToLower(wrong), strings.ToLower(name))
		if name != "" && name != wrong && d < distance && d < len(name) {
			best, distance = name, d
		}
	}
	return best
}

// editDistance returns how many bytes must be inserted, removed or replaced to turn a into b
// (Levenshtein distance).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, diagonal+1)
		}
	}
	return row[len(b)]
}

// paths returns the paths of gatehouse's OpenAPI document.
var paths = sync.OnceValue(func() []string {
	document, err := openapi3.NewLoader().LoadFromData(httpedge.OpenAPI())
	if err != nil {
		panic(err) // tests read it too
	}
	return slices.Sorted(maps.Keys(document.Paths.Map()))
})

// NearestPath returns the documented path that is most similar to one that is not documented; "" =
// there is none, or path is documented.
func NearestPath(path string) string {
	segments := strings.Split(path, "/")
	for _, known := range paths() {
		if fits(strings.Split(known, "/"), segments) {
			return ""
		}
	}
	return Nearest(path, paths())
}

// fits reports whether a path has the form of a documented one.
func fits(known, segments []string) bool {
	return slices.EqualFunc(known, segments, func(k, s string) bool {
		return k == s || strings.HasPrefix(k, "{") && s != ""
	})
}

// RequestHeaders returns the names of the headers that the request of an interaction sends, sorted.
func (it *Interaction) RequestHeaders() []string {
	request, _ := it.body["request"].(map[string]any)
	headers, _ := request["headers"].(map[string]any)
	return slices.Sorted(maps.Keys(headers))
}

// Forgotten returns a state that the interaction does not name, if a response with that status is
// typical of its absence; "" = none.
func (it *Interaction) Forgotten(status int) string {
	response, _ := it.body["response"].(map[string]any)
	if written(response["status"]) == strconv.Itoa(status) {
		return ""
	}
	path, _, _ := strings.Cut(it.Path, "?")
	state := ""
	switch {
	case status == http.StatusUnauthorized && strings.HasPrefix(path, "/oauth/"):
		state = "a confidential client"
	case status == http.StatusUnauthorized:
		state = "an access token"
	case status == http.StatusNotFound && strings.HasPrefix(path, "/api/lookup"):
		state = "the upstream knows a query"
	case status == http.StatusNotFound && strings.HasPrefix(path, "/oauth/"):
		state = "a confidential client"
	}
	if slices.ContainsFunc(it.States, func(use StateUse) bool { return use.Name == state }) {
		return ""
	}
	return state
}
