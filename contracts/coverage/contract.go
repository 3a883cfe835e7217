package coverage

import (
	"slices"
	"sync"

	"gatehouse/cmd/stack/described"
	"gatehouse/httpedge"
)

// contract is the document that the service serves. It says which responses a relation is about.
type contract struct {
	*document
	described *described.Document

	results    []string // paths of lookups
	programs   []string // that programs call: no pages
	unstored   []string // whose responses may not be stored
	limited    []string // with a limit for each token
	profiles   []string // the basic one first
	userInfo   []string
	token      []string
	introspect []string
	revoke     []string
	metadata   []string
	resource   []string
	keys       []string
	devices    []string
	register   []string
	authorize  []string
}

// own returns gatehouse's own document.
var own = sync.OnceValue(func() *contract {
	text := httpedge.OpenAPI()
	d, err := readDocument(text)
	if err != nil {
		panic(err) // never: the document is part of the program
	}
	whole, err := described.Read(text)
	if err != nil {
		panic(err)
	}
	c := &contract{document: d, described: whole}
	c.results = c.having(func(o operation) bool { return tagged(o, "geolocation") })
	c.programs = c.having(func(o operation) bool { return !c.isPage(o) })
	c.unstored = c.having(func(o operation) bool {
		return tagged(o, "identity") && !c.isPage(o) && c.success(o, func(r object) bool {
			header, _ := c.resolve(members(r["headers"])["Cache-Control"])
			return members(header["schema"])["const"] == "no-store"
		})
	})
	c.limited = c.having(func(o operation) bool {
		return c.success(o, func(r object) bool {
			return members(r["headers"])["X-RateLimit-Reset"] != nil
		})
	})
	c.profiles = slices.Concat(c.returning("BasicProfile"), c.returning("DetailedProfile"))
	c.userInfo = c.returning("UserInfo")
	c.token, c.introspect = c.returning("TokenResponse"), c.returning("Introspection")
	c.metadata, c.resource = c.returning("Metadata"), c.returning("ProtectedResource")
	c.keys, c.devices = c.returning("KeySet"), c.returning("DeviceResponse")
	c.register = c.returning("Registration")
	c.revoke, c.authorize = c.named("revoke"), c.named("authorize")
	return c
})

// having returns the paths of the operations of the contract that meet a condition. HEAD and OPTIONS
// have no bodies, by which most conditions tell operations apart.
func (c *contract) having(condition func(operation) bool) []string {
	var paths []string
	for _, o := range c.operations() {
		if o.method != "HEAD" && o.method != "OPTIONS" && condition(o) && !slices.Contains(paths, o.path) {
			paths = append(paths, o.path)
		}
	}
	return paths
}

func (c *contract) named(id string) []string {
	return c.having(func(o operation) bool { return o.body["operationId"] == id })
}

// returning returns the paths whose responses of success have a component as their body.
func (c *contract) returning(component string) []string {
	return c.having(func(o operation) bool {
		return c.success(o, func(r object) bool {
			_, name := c.resolve(content(r))
			return name == component
		})
	})
}

func tagged(o operation, tag string) bool { return slices.Contains(list(o.body["tags"]), any(tag)) }

// success reports whether a response of success meets a condition.
func (c *contract) success(o operation, condition func(object) bool) bool {
	for _, status := range []string{"200", "201"} {
		r, _ := c.resolve(members(o.body["responses"])[status])
		if r != nil && condition(r) {
			return true
		}
	}
	return false
}

// isPage reports whether a response of an operation is a page.
func (c *contract) isPage(o operation) bool {
	for _, ref := range members(o.body["responses"]) {
		if r, _ := c.resolve(ref); members(r["content"])["text/html"] != nil {
			return true
		}
	}
	return false
}

// enumerated returns the lists of closed values in a component: by member, the values.
func (c *contract) enumerated(component string) map[string][]any {
	all := map[string][]any{}
	schema := members(members(members(c.root["components"])["schemas"])[component])
	for name, property := range members(schema["properties"]) {
		items := members(members(property)["items"])
		if values := append(list(items["enum"]), constant(items)...); len(values) > 0 {
			all[name] = values
		}
	}
	return all
}
