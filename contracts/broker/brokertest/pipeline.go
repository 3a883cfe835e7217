package brokertest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/google/uuid"
)

// environment returns the document of an environment.
func (b *Broker) environment(name string) object {
	return object{"uuid": name, "name": name, "displayName": name,
		"production": name == "production", "createdAt": now,
		"_links": object{"self": object{"title": "Environment", "name": name,
			"href": b.URL + "/environments/" + name}}}
}

func (b *Broker) showEnvironments(w http.ResponseWriter, _ *http.Request) {
	all := []any{}
	for _, name := range environments {
		all = append(all, b.environment(name))
	}
	send(w, http.StatusOK, object{"_embedded": object{"environments": all},
		"_links": object{"self": object{"href": b.URL + "/environments"}}})
}

func (b *Broker) showEnvironment(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(environments, r.PathValue("environment")) {
		b.notFound(w, r)
		return
	}
	send(w, http.StatusOK, b.environment(r.PathValue("environment")))
}

// versionOf returns the version that a path names. It responds with 404 if there is none.
func (b *Broker) versionOf(w http.ResponseWriter, r *http.Request) *version {
	if p := b.find(r.PathValue("name")); p != nil {
		if v := p.find(r.PathValue("version")); v != nil {
			return v
		}
	}
	b.notFound(w, r)
	return nil
}

func (b *Broker) showParticipantVersion(w http.ResponseWriter, r *http.Request) {
	v := b.versionOf(w, r)
	if v == nil {
		return
	}
	at := b.participantAt(r.PathValue("name"), v.number)
	deployments := []any{}
	for _, name := range environments {
		deployments = append(deployments, object{"name": name,
			"title": "Record deployment to " + name,
			"href":  at + "/deployed-versions/environment/" + name})
	}
	send(w, http.StatusOK, object{"number": v.number, "createdAt": now,
		"_links": object{"self": object{"title": "Version", "name": v.number, "href": at},
			"pb:record-deployment": deployments}})
}

func (b *Broker) recordDeployment(w http.ResponseWriter, r *http.Request) {
	v := b.versionOf(w, r)
	if v == nil {
		return
	}
	name, environment := r.PathValue("name"), r.PathValue("environment")
	if !slices.Contains(environments, environment) {
		b.notFound(w, r)
		return
	}
	b.deploy(name, v.number, environment)
	send(w, http.StatusCreated, object{"uuid": uuid.NewString(), "currentlyDeployed": true,
		"createdAt": now, "_embedded": object{"environment": b.environment(environment)},
		"_links": object{"self": object{"href": b.participantAt(name, v.number)}}})
}

// publishContracts takes the pacts of a version of a consumer.
func (b *Broker) publishContracts(w http.ResponseWriter, r *http.Request) {
	var request struct {
		Name      string   `json:"pacticipantName"`
		Number    string   `json:"pacticipantVersionNumber"`
		Branch    string   `json:"branch"`
		Tags      []string `json:"tags"`
		Contracts []struct {
			Content []byte `json:"content"` // in base64
		} `json:"contracts"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil || request.Name == "" ||
		request.Number == "" {
		send(w, http.StatusBadRequest,
			object{"errors": object{"pacticipantVersionNumber": []string{"is missing"}}})
		return
	}
	for _, one := range request.Contracts {
		var pact object
		if err := json.Unmarshal(one.Content, &pact); err != nil {
			send(w, http.StatusBadRequest,
				object{"errors": object{"contracts": []string{"content is no JSON (at index 0)"}}})
			return
		}
		c, err := b.publish(pact, request.Number, request.Branch, request.Tags)
		if err != nil {
			send(w, http.StatusConflict, object{"notices": []any{
				object{"type": "error", "text": err.Error()}}})
			return
		}
		b.trigger(c, request.Number)
	}
	link := object{"title": "Version", "name": request.Number,
		"href": b.participantAt(request.Name, request.Number)}
	self := object{"self": link}
	send(w, http.StatusOK, object{
		"notices": []any{object{"type": "success", "text": fmt.Sprintf(
			"Created %s version %s with branch %s", request.Name, request.Number,
			request.Branch)}},
		"logs": []any{},
		"_embedded": object{"pacticipant": object{"name": request.Name, "_links": self},
			"version": object{"number": request.Number, "_links": self}},
		"_links": object{"pb:pacticipant": link, "pb:pacticipant-version": link,
			"pb:pacticipant-version-tags": []any{}, "pb:contracts": []any{}}})
}

// requiresVerification is the event of a contract without a result of a version that needs one.
const requiresVerification = "contract_requiring_verification_published"

// trigger calls the webhooks for a contract that requires verification: once for the newest version
// of the provider's main branch and for each deployed version that has no good result.
func (b *Broker) trigger(c *content, number string) {
	provider := b.participant(c.provider)
	var lacking []*version
	need := func(v *version) {
		if v == nil || slices.Contains(lacking, v) {
			return
		}
		if good := c.verifiedBy(v.number); good == nil {
			lacking = append(lacking, v)
		}
	}
	need(provider.latest(on(provider.main)))
	for _, name := range environments {
		need(provider.find(b.deployed[place{c.provider, name}]))
	}
	for _, hook := range b.webhooks {
		if of, ok := hook["provider"].(object); ok && of["name"] != c.provider {
			continue
		}
		for _, event := range anyList(hook["events"]) {
			if of, _ := event.(object); of["name"] != requiresVerification {
				continue
			}
			for _, v := range lacking {
				b.call(hook, c, number, v)
			}
		}
	}
}

func anyList(v any) []any {
	list, _ := v.([]any)
	return list
}

// call sends the request of a webhook, without waiting for the response.
func (b *Broker) call(hook object, c *content, number string, v *version) {
	request, _ := hook["request"].(object)
	address, _ := request["url"].(string)
	method, _ := request["method"].(string)
	text, ok := request["body"].(string)
	if !ok {
		body, err := json.Marshal(request["body"])
		if err != nil {
			b.t.Error(err)
			return
		}
		text = string(body)
	}
	branch := ""
	if len(v.branches) > 0 {
		branch = v.branches[0]
	}
	text = strings.NewReplacer("${pactbroker.providerVersionNumber}", v.number,
		"${pactbroker.providerVersionBranch}", branch,
		"${pactbroker.consumerName}", c.consumer, "${pactbroker.consumerVersionNumber}", number,
		"${pactbroker.pactUrl}", b.addressOf(c, "cvn="+number+"&w=false")).Replace(text)
	b.hooks.Go(func() {
		sent, err := http.NewRequest(method, address, bytes.NewReader([]byte(text)))
		if err != nil {
			b.t.Errorf("call a webhook: %v", err)
			return
		}
		headers, _ := request["headers"].(object)
		for name, value := range headers {
			sent.Header.Set(name, fmt.Sprint(value))
		}
		response, err := http.DefaultClient.Do(sent)
		if err != nil {
			b.t.Errorf("call a webhook: %v", err)
			return
		}
		_, _ = io.Copy(io.Discard, response.Body) // nobody waits for it
		_ = response.Body.Close()
	})
}

func (b *Broker) putWebhook(w http.ResponseWriter, r *http.Request) {
	hook, ok := read(w, r)
	if !ok {
		return
	}
	request, _ := hook["request"].(object)
	if request["url"] == nil || request["method"] == nil || len(anyList(hook["events"])) == 0 {
		send(w, http.StatusBadRequest,
			object{"errors": object{"request": []string{"is missing"}}})
		return
	}
	id, status := r.PathValue("uuid"), http.StatusOK
	if _, before := b.webhooks[id]; !before {
		status = http.StatusCreated
	}
	if id == "" {
		id = uuid.NewString()
	}
	b.webhooks[id] = hook
	document := object{"uuid": id, "_links": object{"self": object{
		"href": b.URL + "/webhooks/" + id}}}
	for name, member := range hook {
		document[name] = member
	}
	send(w, status, document)
}

// canIDeploy says whether a version has good results with all that is deployed. A consumer needs
// its provider there; a provider needs no consumer.
func (b *Broker) canIDeploy(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	name, number, environment := q.Get("q[][pacticipant]"), q.Get("q[][version]"),
		q.Get("environment")
	p := b.find(name)
	if p == nil {
		send(w, http.StatusBadRequest, object{"errors": []string{
			fmt.Sprintf("Pacticipant %s not found", name)}})
		return
	}
	if !slices.Contains(environments, environment) {
		send(w, http.StatusBadRequest, object{"errors": []string{
			fmt.Sprintf("Environment with name '%s' does not exist", environment)}})
		return
	}
	v := p.find(number)
	if v == nil {
		send(w, http.StatusBadRequest, object{"errors": []string{
			fmt.Sprintf("No version with number %s exists for %s", number, name)}})
		return
	}
	m := matrix{}
	for _, c := range v.pacts {
		provider := b.deployed[place{c.provider, environment}]
		if provider == "" {
			m.unknown++
			m.say("There is no verified pact between version %s of %s and the version of %s currently in %s (no version is currently recorded as deployed/released in this environment)", number, name, c.provider, environment)
			continue
		}
		m.count(c, number, provider)
	}
	for _, consumer := range b.participants {
		there := consumer.find(b.deployed[place{consumer.name, environment}])
		if there == nil {
			continue
		}
		if c := there.pactOf(name); c != nil {
			m.count(c, there.number, number)
		}
	}
	kind := "success"
	var deployable any = true
	switch {
	case m.unknown > 0:
		deployable, kind = nil, "error" // a client may wait for the result
	case m.failed > 0:
		deployable, kind = false, "error"
	case len(m.rows) == 0:
		m.say("There are no missing dependencies")
	default:
		m.say("All required verification results are published and successful")
	}
	notices := []any{}
	for _, reason := range m.reasons {
		notices = append(notices, object{"type": kind, "text": reason})
	}
	send(w, http.StatusOK, object{"notices": notices, "matrix": append([]any{}, m.rows...),
		"summary": object{"deployable": deployable, "reason": strings.Join(m.reasons, "\n"),
			"success": m.success, "failed": m.failed, "unknown": m.unknown}})
}

// matrix collects results of pairs of versions.
type matrix struct {
	success, failed, unknown int
	reasons                  []string
	rows                     []any
}

func (m *matrix) say(format string, args ...any) {
	m.reasons = append(m.reasons, fmt.Sprintf(format, args...))
}

// count adds the result of a pact for a version of its provider.
func (m *matrix) count(c *content, consumer, provider string) {
	row := object{"consumer": object{"name": c.consumer, "version": object{"number": consumer}},
		"provider": object{"name": c.provider, "version": object{"number": provider}},
		"pact":     object{"createdAt": now}}
	switch good := c.verifiedBy(provider); {
	case good == nil:
		m.unknown++
		m.say("There is no verified pact between version %s of %s and version %s of %s", consumer,
			c.consumer, provider, c.provider)
	case !*good:
		m.failed++
		m.say("The verification for the pact between version %s of %s and version %s of %s failed",
			consumer, c.consumer, provider, c.provider)
	default:
		m.success++
	}
	if good := c.verifiedBy(provider); good != nil {
		row["verificationResult"] = object{"success": *good, "verifiedAt": now}
	}
	m.rows = append(m.rows, row)
}
