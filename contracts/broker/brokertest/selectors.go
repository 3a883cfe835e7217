package brokertest

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// offer is a pact to be verified, with the reasons.
type offer struct {
	*content
	version string // of the consumer; the newest
	wip     string // branch of a work-in-progress pact; "" = it is none
	short   []string
	reasons []string
	owners  []string // of reasons of the kind latest, for requests without selectors
}

// selectable holds the members of a selector.
var selectable = []string{"mainBranch", "matchingBranch", "branch", "fallbackBranch",
	"deployedOrReleased", "deployed", "released", "environment", "tag", "fallbackTag", "latest",
	"consumer"}

// checkSelectors returns the errors of a request, in the broker's words.
func checkSelectors(list []any, branch string) []string {
	var wrong []string
	for i, one := range list {
		selector, ok := one.(object)
		say := func(format string, args ...any) {
			wrong = append(wrong, fmt.Sprintf(format, args...)+fmt.Sprintf(" (at index %d)", i))
		}
		if !ok || len(selector) == 0 {
			say("must specify a value for environment or mainBranch or branch or tag")
			continue
		}
		for name, value := range selector {
			if !slices.Contains(selectable, name) {
				say("unknown key '%s'", name)
			}
			if text, ok := value.(string); ok && name == "environment" &&
				!slices.Contains(environments, text) {
				say("environment with name '%s' does not exist", text)
			}
		}
		if selector["matchingBranch"] == true && branch == "" {
			say("the providerVersionBranch must be specified when the selector matchingBranch is true")
		}
	}
	return wrong
}

// offers returns the pacts that selectors select, and those of work in progress if wip is true.
func (b *Broker) offers(provider string, list []any, branch string, wip bool) []*offer {
	var all []*offer
	add := func(consumer *participant, v *version, short, reason string) {
		c := v.pactOf(provider)
		i := slices.IndexFunc(all, func(o *offer) bool { return o.content == c })
		if i < 0 {
			i = len(all)
			all = append(all, &offer{content: c, version: v.number})
		}
		all[i].short = append(all[i].short, short)
		all[i].reasons = append(all[i].reasons, reason)
		all[i].owners = append(all[i].owners, consumer.name)
	}
	for _, consumer := range b.participants {
		for _, one := range sorted(list) {
			selector, _ := one.(object)
			b.choose(consumer, provider, branch, selector, func(v *version, short, reason string) {
				add(consumer, v, short, reason)
			})
		}
	}
	if !wip {
		return all
	}
	for _, consumer := range b.participants {
		for _, v := range consumer.versions {
			c := v.pactOf(provider)
			if c == nil || len(v.branches) == 0 ||
				slices.ContainsFunc(all, func(o *offer) bool { return o.content == c }) ||
				consumer.latest(on(v.branches[0])) != v || !b.pending(c, on(branch)) {
				continue
			}
			all = append(all, &offer{content: c, version: v.number, wip: v.branches[0],
				short: []string{"latest from branch " + v.branches[0]}})
		}
	}
	return all
}

// sorted returns selectors in the order in which the broker names them: deployed versions first.
func sorted(list []any) []any {
	return slices.SortedStableFunc(slices.Values(list), func(a, b any) int {
		return cmp.Compare(deployedLast(a), deployedLast(b))
	})
}

func deployedLast(v any) int {
	selector, _ := v.(object)
	if selector["deployedOrReleased"] == true || selector["deployed"] == true ||
		selector["environment"] != nil {
		return 0
	}
	return 1
}

// choose passes each version of a consumer that a selector selects, with the reason.
func (b *Broker) choose(consumer *participant, provider, branch string, selector object,
	add func(v *version, short, reason string)) {
	if name, ok := selector["consumer"].(string); ok && name != consumer.name {
		return
	}
	has := func(v *version) bool { return v != nil && v.pactOf(provider) != nil }
	newest := func(name, short, reason string) {
		v := consumer.latest(func(v *version) bool { return on(name)(v) && has(v) })
		if name != "" && v != nil {
			add(v, short, fmt.Sprintf(reason, v.number))
		}
	}
	for _, environment := range environments {
		v := consumer.find(b.deployed[place{consumer.name, environment}])
		wanted, ok := selector["environment"].(string)
		if deployedLast(selector) == 0 && has(v) && (!ok || wanted == environment) {
			add(v, "deployed to "+environment, fmt.Sprintf(
				"consumer version(s) currently deployed to %s (%s)", environment, v.number))
		}
	}
	if selector["mainBranch"] == true {
		newest(consumer.main, "latest from main branch",
			"latest version from the main branch '"+consumer.main+"' (%s)")
	}
	if selector["matchingBranch"] == true {
		newest(branch, "latest from matching branch "+branch,
			"latest version from branch '"+branch+"' (%s)")
	}
	if name, ok := selector["branch"].(string); ok {
		newest(name, "latest from branch "+name, "latest version from branch '"+name+"' (%s)")
	}
	if tag, ok := selector["tag"].(string); ok {
		v := consumer.latest(func(v *version) bool {
			return slices.Contains(v.tags, tag) && has(v)
		})
		if v != nil {
			add(v, "latest with tag "+tag,
				fmt.Sprintf("latest version tagged '%s' (%s)", tag, v.number))
		}
	}
}

// addressOf returns the address of a pact. metadata says why it is verified, "" = nothing.
func (b *Broker) addressOf(c *content, metadata string) string {
	address := fmt.Sprintf("%s/pacts/provider/%s/consumer/%s/pact-version/%s", b.URL,
		url.PathEscape(c.provider), url.PathEscape(c.consumer), c.sha)
	if metadata != "" {
		address += "/metadata/" + base64.RawURLEncoding.EncodeToString([]byte(metadata))
	}
	return address
}

const pendingPage = " Read more at https://docs.pact.io/go/pending"

// listed returns an offer as the broker lists it. provider describes the versions that count for
// whether the pact is pending; "" = the request asks for none.
func (b *Broker) listed(o *offer, name, versions string, pending bool, more ...string) object {
	metadata := "s[][l]=true&s[][cv]=" + o.version + "&p=false"
	if o.wip != "" {
		metadata = "w=true"
	} else if pending {
		metadata = "s[][l]=true&s[][cv]=" + o.version + "&p=true"
	}
	properties := object{}
	texts := append(more, b.reason(o, versions))
	if versions != "" {
		properties["pending"] = pending
		texts = append(texts, standing(o, name, versions, pending))
	}
	if o.wip != "" {
		properties["wip"] = true
	}
	notices := []any{}
	for _, text := range texts {
		notices = append(notices, object{"when": "before_verification", "text": text})
	}
	if pending && versions != "" {
		notices = append(notices, afterwards(versions)...)
	}
	properties["notices"] = notices
	return object{"shortDescription": strings.Join(o.short, ", "),
		"verificationProperties": properties,
		"_links": object{"self": object{"href": b.addressOf(o.content, metadata),
			"name": fmt.Sprintf("Pact between %s (%s) and %s", o.consumer, o.version, name)}}}
}

// reason says why a pact is verified.
func (b *Broker) reason(o *offer, versions string) string {
	if o.wip != "" {
		return fmt.Sprintf("The pact at %s is being verified because it is a 'work in progress' pact (ie. it is the pact for the latest version of %s from branch '%s' and it has not yet been successfully verified by %s when the pact's application version was explicitly specified in the consumer version selectors). Read more at https://docs.pact.io/go/wip",
			b.addressOf(o.content, "wip=true"), o.consumer, o.wip,
			strings.Replace(versions, "any version", "a version", 1))
	}
	noun := "version matching the following criterion"
	if len(o.reasons) > 1 {
		noun = "versions matching the following criteria"
	}
	return fmt.Sprintf("The pact at %s is being verified because the pact content belongs to the consumer %s:\n    * %s",
		b.addressOf(o.content, ""), noun, strings.Join(o.reasons, "\n    * "))
}

// standing says whether a failure counts.
func standing(o *offer, name, versions string, pending bool) string {
	one := strings.Replace(versions, "any version", "a version", 1)
	switch {
	case o.wip != "":
		return fmt.Sprintf("This pact is in pending state for this version of %s because it was included as a 'work in progress' pact. If this verification fails, it will not cause the overall build to fail.", name) + pendingPage
	case pending:
		return fmt.Sprintf("This pact is in pending state for this version of %s because a successful verification result by %s has not yet been published. If this verification fails, it will not cause the overall build to fail.", name, one) + pendingPage
	case versions == name:
		return fmt.Sprintf("This pact has previously been successfully verified by %s. If this verification fails, it will fail the build.", name) + pendingPage
	}
	return fmt.Sprintf("This pact has previously been successfully verified by %s. If this verification fails, it will fail the build.", one) + pendingPage
}

// afterwards returns the notices for the time after the verification of a pending pact.
func afterwards(versions string) []any {
	name := strings.TrimPrefix(versions, "any version of ")
	still := "This pact is still in pending state for " + versions
	if name == versions {
		still = "This pact is still in pending state for any version of " + name
	}
	of := strings.TrimPrefix(still, "This pact is still in pending state for ")
	return []any{
		object{"when": "after_verification:success_true_published_false",
			"text": still + " as the successful verification results have not yet been published."},
		object{"when": "after_verification:success_false_published_false",
			"text": still + " as a successful verification result has not yet been published"},
		object{"when": "after_verification:success_true_published_true",
			"text": "This pact is no longer in pending state for " + of + ", as a successful verification result has been published. If a verification for a version of " + strings.SplitN(name, " ", 2)[0] + " fails in the future, it will fail the build." + pendingPage},
		object{"when": "after_verification:success_false_published_true",
			"text": still + " as a successful verification result has not yet been published"},
	}
}
