package brokertest

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// now is the time of everything that happens.
const now = "2026-11-22T05:22:14+00:00"

func (b *Broker) routes() {
	const pact = "/pacts/provider/{provider}/consumer/{consumer}"
	handle := b.mux.HandleFunc
	handle("/", b.notFound)
	handle("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		send(w, http.StatusOK, b.replay("index", nil))
	})
	handle("GET /pacts/provider/{provider}/for-verification", b.listAll)
	handle("POST /pacts/provider/{provider}/for-verification", b.list)
	handle("GET "+pact+"/version/{version}", b.showVersion)
	handle("GET "+pact+"/pact-version/{sha}", b.showContent)
	handle("GET "+pact+"/pact-version/{sha}/metadata/{metadata}", b.showContent)
	handle("POST "+pact+"/pact-version/{sha}/verification-results", b.take)
	handle("POST "+pact+"/pact-version/{sha}/metadata/{metadata}/verification-results", b.take)
	handle("GET /pacticipants/{name}", b.showParticipant)
	handle("GET /pacticipants/{name}/versions/{version}", b.showParticipantVersion)
	handle("PUT /pacticipants/{name}/branches/{branch}/versions/{version}", b.putBranch)
	handle("PUT /pacticipants/{name}/versions/{version}/tags/{tag}", b.putTag)
	handle("POST /pacticipants/{name}/versions/{version}/deployed-versions/environment/{environment}", b.recordDeployment)
	handle("GET /environments", b.showEnvironments)
	handle("GET /environments/{environment}", b.showEnvironment)
	handle("POST /contracts/publish", b.publishContracts)
	handle("GET /matrix", b.canIDeploy)
	handle("POST /webhooks", b.putWebhook)
	handle("PUT /webhooks/{uuid}", b.putWebhook)
}

func (b *Broker) notFound(w http.ResponseWriter, _ *http.Request) {
	send(w, http.StatusNotFound,
		object{"error": "The requested document was not found on this server."})
}

// read parses the body of a request. It responds with 400 to a body that is no JSON object.
func read(w http.ResponseWriter, r *http.Request) (body object, ok bool) {
	content, err := io.ReadAll(r.Body)
	if err == nil && len(content) == 0 {
		return object{}, true
	}
	if err != nil || json.Unmarshal(content, &body) != nil || body == nil {
		send(w, http.StatusBadRequest, object{"error": object{
			"message": "Error parsing JSON - expected an object", "reference": "a1b2"}})
		return nil, false
	}
	return body, true
}

// knownProvider responds with 404 to an unknown provider.
func (b *Broker) knownProvider(w http.ResponseWriter, r *http.Request) (name string, ok bool) {
	name = r.PathValue("provider")
	if b.find(name) == nil {
		send(w, http.StatusNotFound,
			object{"error": fmt.Sprintf("No provider with name '%s' found", name)})
		return "", false
	}
	return name, true
}

// listAll responds with the pacts of main branches and deployed versions.
func (b *Broker) listAll(w http.ResponseWriter, r *http.Request) {
	name, ok := b.knownProvider(w, r)
	if !ok {
		return
	}
	const outdated = "WARNING - this version of the Pact library uses a beta version of the API which will be removed in the future. Please upgrade your Pact library. See https://docs.pact.io/pact_broker/advanced_topics/provider_verification_results/#pacts-for-verification for minimum required versions."
	all := []any{}
	for _, o := range b.offers(name, standard, "", false) {
		for i, reason := range o.reasons {
			o.reasons[i] = strings.Replace(reason, "latest version from",
				"latest version of "+o.owners[i]+" from", 1)
		}
		all = append(all, b.listed(o, name, name,
			b.pending(o.content, func(*version) bool { return true }), outdated))
	}
	b.sendList(w, name, all)
}

// standard selects what a request without selectors gets.
var standard = []any{object{"mainBranch": true}, object{"deployedOrReleased": true}}

func (b *Broker) list(w http.ResponseWriter, r *http.Request) {
	name, ok := b.knownProvider(w, r)
	if !ok {
		return
	}
	request, ok := read(w, r)
	if !ok {
		return
	}
	b.requests = append(b.requests, request)
	branch, _ := request["providerVersionBranch"].(string)
	list, ok := request["consumerVersionSelectors"].([]any)
	if wrong := checkSelectors(list, branch); len(wrong) > 0 {
		send(w, http.StatusBadRequest,
			object{"errors": object{"consumerVersionSelectors": wrong}})
		return
	}
	if !ok {
		list = standard
	}
	tags, _ := request["providerVersionTags"].([]any)
	counts := func(v *version) bool {
		return on(branch)(v) || slices.ContainsFunc(tags, func(tag any) bool {
			return slices.Contains(v.tags, fmt.Sprint(tag))
		})
	}
	versions := ""
	if asked, _ := request["includePendingStatus"].(bool); asked {
		versions = fmt.Sprintf("any version of %s from branch '%s'", name, branch)
		if branch == "" {
			versions = fmt.Sprintf("any version of %s with tag '%v'", name, tags)
		}
	}
	_, wip := request["includeWipPactsSince"].(string)
	all := []any{}
	for _, o := range b.offers(name, list, branch, wip) {
		all = append(all, b.listed(o, name, versions, b.pending(o.content, counts)))
	}
	b.sendList(w, name, all)
}

func (b *Broker) sendList(w http.ResponseWriter, provider string, all []any) {
	send(w, http.StatusOK, object{"_embedded": object{"pacts": all},
		"_links": object{"self": object{"title": "Pacts to be verified",
			"href": b.URL + "/pacts/provider/" + url.PathEscape(provider) + "/for-verification"}}})
}

func (b *Broker) showVersion(w http.ResponseWriter, r *http.Request) {
	consumer := b.find(r.PathValue("consumer"))
	if consumer != nil {
		if v := consumer.find(r.PathValue("version")); v != nil {
			if c := v.pactOf(r.PathValue("provider")); c != nil {
				b.sendPact(w, c, v.number, "")
				return
			}
		}
	}
	b.notFound(w, r)
}

// content returns the content that a path names, or nil.
func (b *Broker) content(r *http.Request) *content {
	i := slices.IndexFunc(b.contents, func(c *content) bool {
		return c.sha == r.PathValue("sha") && c.consumer == r.PathValue("consumer") &&
			c.provider == r.PathValue("provider")
	})
	if i < 0 {
		return nil
	}
	return b.contents[i]
}

func (b *Broker) showContent(w http.ResponseWriter, r *http.Request) {
	c := b.content(r)
	if c == nil {
		b.notFound(w, r)
		return
	}
	newest := b.participant(c.consumer).latest(func(v *version) bool {
		return slices.Contains(v.pacts, c)
	})
	b.sendPact(w, c, newest.number, r.PathValue("metadata"))
}

func (b *Broker) sendPact(w http.ResponseWriter, c *content, number, metadata string) {
	if metadata == "" {
		metadata = base64.RawURLEncoding.EncodeToString([]byte("cvn=" + number))
	}
	document := b.replay("pact", names{"greeter", c.consumer, "gatehouse", c.provider, "c0ffee1",
		number, "b9c31e9f3c5ee79380f371b7be35d07ac4eed61e", c.sha,
		"c1tdW2N2XT05JnNbXVtsXT10cnVlJnNbXVtjdl09OSZwPWZhbHNl", metadata})
	whole := object{"createdAt": now, "_links": document["_links"]}
	for name, member := range c.body {
		whole[name] = member
	}
	send(w, http.StatusOK, whole)
}

func (b *Broker) take(w http.ResponseWriter, r *http.Request) {
	c := b.content(r)
	if c == nil {
		b.notFound(w, r)
		return
	}
	body, ok := read(w, r)
	if !ok {
		return
	}
	wrong := object{}
	success, isFlag := body["success"].(bool)
	if _, there := body["success"]; !there {
		wrong["success"] = []string{"is missing"}
	} else if !isFlag {
		wrong["success"] = []string{"must be boolean"}
	}
	number, _ := body["providerApplicationVersion"].(string)
	if number == "" {
		wrong["providerApplicationVersion"] = []string{"is missing"}
	}
	if len(wrong) > 0 {
		send(w, http.StatusBadRequest, object{"errors": wrong})
		return
	}
	b.participant(c.provider).version(number)
	c.results = append(c.results, result{number, success})
	b.published = append(b.published, Published{c.consumer, body})
	b.store.results++
	document := b.replay("verification-result", names{"greeter", c.consumer, "gatehouse",
		c.provider, "b9c31e9f3c5ee79380f371b7be35d07ac4eed61e", c.sha, "110",
		strconv.Itoa(b.store.results)})
	for name, member := range body {
		document[name] = member
	}
	document["providerName"] = c.provider
	links := document["_links"].(object)["self"].(object)
	w.Header().Set("Location", links["href"].(string))
	send(w, http.StatusCreated, document)
}

func (b *Broker) showParticipant(w http.ResponseWriter, r *http.Request) {
	p := b.find(r.PathValue("name"))
	if p == nil {
		b.notFound(w, r)
		return
	}
	newest := ""
	if len(p.versions) > 0 {
		newest = p.versions[len(p.versions)-1].number
	}
	document := b.replay("pacticipant", names{"gatehouse", p.name, "Gatehouse", p.name, "g4",
		newest})
	if newest == "" {
		document["_embedded"] = object{"labels": []any{}}
	}
	if delete(document, "mainBranch"); p.main != "" {
		document["mainBranch"] = p.main
	}
	send(w, http.StatusOK, document)
}

func (b *Broker) putBranch(w http.ResponseWriter, r *http.Request) {
	name, branch, number := r.PathValue("name"), r.PathValue("branch"), r.PathValue("version")
	b.participant(name).version(number).addBranch(branch)
	b.branches = append(b.branches, branch+"@"+number)
	b.sendCreated(w, b.replay("branch-version", names{"gatehouse", name, "main",
		branch, "rec1", number}))
}

func (b *Broker) putTag(w http.ResponseWriter, r *http.Request) {
	name, tag, number := r.PathValue("name"), r.PathValue("tag"), r.PathValue("version")
	v := b.participant(name).version(number)
	v.tags = append(v.tags, tag)
	b.tags = append(b.tags, tag+"@"+number)
	b.sendCreated(w, b.replay("version-tag", names{"gatehouse", name, "dev", tag, "rec1", number}))
}

// sendCreated responds with a new document.
func (b *Broker) sendCreated(w http.ResponseWriter, document object) {
	self := document["_links"].(object)["self"].(object)
	w.Header().Set("Location", self["href"].(string))
	send(w, http.StatusCreated, document)
}

// participantAt returns the address of a version.
func (b *Broker) participantAt(name, number string) string {
	return b.URL + "/pacticipants/" + url.PathEscape(name) + "/versions/" + url.PathEscape(number)
}
