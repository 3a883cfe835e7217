package mutants

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// at splits the path of a member into the path of its object and its name.
func at(path string) (object, name string) {
	n := strings.LastIndexByte(path, '.')
	return path[:max(n, 0)], path[n+1:]
}

// member changes the objects that may have the member at path.
func member(path string, f func(o map[string]any, name string)) change {
	object, name := at(path)
	return func(a *response) { a.object(object, func(o map[string]any) { f(o, name) }) }
}

// drop removes a member.
func drop(path string) change {
	return member(path, func(o map[string]any, name string) { delete(o, name) })
}

// add sets a member, which need not exist.
func add(path string, value any) change {
	return member(path, func(o map[string]any, name string) { o[name] = value })
}

// extra adds a member to an object.
func extra(path string) change { return add(strings.TrimPrefix(path+".debug", "."), "x") }

// added adds a member to objects without it.
func added(path string) change {
	return member(path, func(o map[string]any, name string) {
		if _, ok := o[name]; !ok {
			o[name] = "made_up"
		}
	})
}

// rename renames a member.
func rename(path, to string) change {
	return member(path, func(o map[string]any, name string) {
		if v, ok := o[name]; ok {
			delete(o, name)
			o[to] = v
		}
	})
}

// each changes the value of a member, if it exists.
func each(path string, f func(any) any) change {
	return member(path, func(o map[string]any, name string) {
		if v, ok := o[name]; ok {
			o[name] = f(v)
		}
	})
}

// set sets a member, if it exists.
func set(path string, value any) change { return each(path, func(any) any { return value }) }

// changedText changes a string.
func changedText(path string, f func(string) string) change {
	return each(path, func(v any) any {
		if s, ok := v.(string); ok {
			return f(s)
		}
		return v
	})
}

// calculated changes a number.
func calculated(path string, f func(float64) float64) change {
	return each(path, func(v any) any {
		if n, ok := v.(json.Number); ok {
			if number, err := n.Float64(); err == nil {
				return json.Number(strconv.FormatFloat(f(number), 'f', -1, 64))
			}
		}
		return v
	})
}

// status changes the status.
func status(code int) change { return func(a *response) { a.status = code } }

// without removes a header.
func without(name string) change { return func(a *response) { a.header.Del(name) } }

// header sets a header.
func header(name, value string) change { return func(a *response) { a.header.Set(name, value) } }

// instead replaces the response.
func instead(code int, body any) change {
	return func(a *response) {
		a.status = code
		a.value(body)
	}
}

// redirect changes the query of a Location.
func redirect(f func(url.Values)) change {
	return func(a *response) {
		u, err := url.Parse(a.header.Get("Location"))
		if err != nil {
			return
		}
		query := u.Query()
		f(query)
		u.RawQuery = query.Encode()
		a.header.Set("Location", u.String())
	}
}

// parameter changes the query of a Location that redirects to the client.
func parameter(f func(url.Values)) change {
	return redirect(func(q url.Values) {
		if q.Has("code") || q.Has("error") {
			f(q)
		}
	})
}

// when restricts a change to the responses that meet a condition.
func when(condition func(*response) bool, f change) change {
	return func(a *response) {
		if condition(a) {
			f(a)
		}
	}
}

// coded reports whether the body has an error code.
func coded(code string) func(*response) bool {
	return func(a *response) bool { return strings.Contains(string(a.body), `"error":"`+code+`"`) }
}

// wrong returns mutants that set a member to a wrong value, by the names of the defects.
func wrong(operation string, status int, member string, values map[string]any) []Mutant {
	var all []Mutant
	for name, value := range values {
		all = append(all, spoiled(operation, status, member+" "+name, set(member, value)))
	}
	return all
}

// asked returns a Mutant that changes the request.
func asked(operation, name string, f func(*http.Request)) Mutant {
	return Mutant{Name: name, Operation: operation, Asks: true, Wrap: func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.URL.Path == operation {
				f(r)
			}
			service.ServeHTTP(w, r)
		})
	}}
}

// swapped exchanges the values of two members of the same object, or of objects below path.
func swapped(path, a, b string) change {
	objectA, nameA := at(a)
	objectB, nameB := at(b)
	return func(r *response) {
		r.object(path, func(o map[string]any) {
			first, second := inside(o, objectA), inside(o, objectB)
			if first == nil || second == nil {
				return
			}
			first[nameA], second[nameB] = second[nameB], first[nameA]
		})
	}
}

// inside returns the object at a path of one name, or o itself without a name.
func inside(o map[string]any, name string) map[string]any {
	if name == "" {
		return o
	}
	found, _ := o[name].(map[string]any)
	return found
}

// recalculated changes the value of a header that is an integer.
func recalculated(name string, f func(float64) float64) change {
	return func(r *response) {
		if n, err := strconv.ParseInt(r.header.Get(name), 10, 64); err == nil {
			r.header.Set(name, fmt.Sprintf("%.0f", f(float64(n))))
		}
	}
}

// times and plus are for calculated and recalculated.
func times(factor float64) func(float64) float64 {
	return func(v float64) float64 { return v * factor }
}

func plus(n float64) func(float64) float64 { return func(v float64) float64 { return v + n } }

// results changes the list of results and keeps count and failed as they were.
func results(f func([]any) []any) change {
	return func(r *response) {
		r.object("", func(o map[string]any) {
			if list, ok := o["results"].([]any); ok {
				o["results"] = f(list)
				o["count"] = json.Number(fmt.Sprint(len(o["results"].([]any))))
			}
		})
	}
}

// reform sets a parameter of a form, if the form has it.
func reform(r *http.Request, name, value string) {
	text, err := io.ReadAll(r.Body)
	form, parseErr := url.ParseQuery(string(text))
	if err == nil && parseErr == nil && form.Get(name) != "" {
		form.Set(name, value)
		text = []byte(form.Encode())
	}
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(text)), int64(len(text))
}

// unquery removes a parameter.
func unquery(r *http.Request, name string) {
	q := r.URL.Query()
	q.Del(name)
	r.URL.RawQuery = q.Encode()
}

// requery sets a parameter.
func requery(r *http.Request, name, value string) {
	q := r.URL.Query()
	q.Set(name, value)
	r.URL.RawQuery = q.Encode()
}
