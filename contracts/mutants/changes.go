package mutants

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// at splits the path of a member into the path of its object and its name.
func at(path string) (object, name string) {
	n := strings.LastIndexByte(path, '.')
	return path[:max(n, 0)], path[n+1:]
}

// drop removes a member.
func drop(path string) change {
	object, name := at(path)
	return func(a *response) { a.object(object, func(o map[string]any) { delete(o, name) }) }
}

// set changes the value of a member, if it exists.
func set(path string, value any) change {
	object, name := at(path)
	return func(a *response) {
		a.object(object, func(o map[string]any) {
			if _, ok := o[name]; ok {
				o[name] = value
			}
		})
	}
}

// null makes a member null.
func null(path string) change { return set(path, nil) }

// rename renames a member.
func rename(path, to string) change {
	object, name := at(path)
	return func(a *response) {
		a.object(object, func(o map[string]any) {
			if v, ok := o[name]; ok {
				delete(o, name)
				o[to] = v
			}
		})
	}
}

// text turns a member into a string.
func text(path string) change {
	object, name := at(path)
	return func(a *response) {
		a.object(object, func(o map[string]any) {
			if v, ok := o[name]; ok && v != nil {
				o[name] = fmt.Sprint(v)
			}
		})
	}
}

// number turns a string member into a number.
func number(path string) change {
	object, name := at(path)
	return func(a *response) {
		a.object(object, func(o map[string]any) {
			if _, ok := o[name].(string); ok {
				o[name] = 12
			}
		})
	}
}

// extra adds a member to an object.
func extra(path string) change {
	return func(a *response) { a.object(path, func(o map[string]any) { o["debug"] = "x" }) }
}

// add adds a member with a value.
func add(name string, value any) change {
	return func(a *response) { a.object("", func(o map[string]any) { o[name] = value }) }
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

// parameter changes the query of a Location that redirects to the client.
func parameter(f func(url.Values)) change {
	return func(a *response) {
		u, err := url.Parse(a.header.Get("Location"))
		if err != nil || !u.Query().Has("code") && !u.Query().Has("error") {
			return
		}
		query := u.Query()
		f(query)
		u.RawQuery = query.Encode()
		a.header.Set("Location", u.String())
	}
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

// asked returns a Mutant that changes the request.
func asked(operation, name string, f func(*http.Request)) Mutant {
	return Mutant{name, operation, 0, "", func(service http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method+" "+r.URL.Path == operation {
				f(r)
			}
			service.ServeHTTP(w, r)
		})
	}}
}
