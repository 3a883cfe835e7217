//go:build pact

package brokertest_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/pact-foundation/pact-go/v2/provider"

	"gatehouse/contracts/broker/brokertest"
)

const pact = `{"consumer":{"name":"web shop"},"provider":{"name":"gatehouse"},"interactions":[
{"description":"a greeting","request":{"method":"GET","path":"/"},"response":{"status":200}}],"metadata":{"pactSpecification":{"version":"2.0.0"}}}`

// TestReferenceVerifier uses the fake broker with libpact_ffi, which is made for the real broker.
func TestReferenceVerifier(t *testing.T) {
	b := brokertest.New(t)
	b.WantToken("secret")
	b.Publish([]byte(pact), "c1", "main")
	service := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, err := io.WriteString(w, "hello"); err != nil {
			t.Error(err)
		}
	}))
	defer service.Close()
	err := provider.NewVerifier().VerifyProvider(t, provider.VerifyRequest{
		Provider: "gatehouse", ProviderBaseURL: service.URL, BrokerURL: b.URL,
		BrokerToken: "secret", FailIfNoPactsFound: true,
		ConsumerVersionSelectors: []provider.Selector{&provider.ConsumerVersionSelector{MainBranch: true}}, EnablePending: true,
		PublishVerificationResults: true, ProviderVersion: "1.0/7", ProviderBranch: "feat/x",
		ProviderTags: []string{"dev"},
	})
	if err != nil {
		t.Error(err)
	}
	if asked := b.Requests(); len(asked) != 1 || asked[0]["includePendingStatus"] != true ||
		asked[0]["providerVersionBranch"] != "feat/x" {
		t.Errorf("got %v, want pacts to be asked for", asked)
	}
	told := b.Published()
	if len(told) != 1 || told[0].Consumer != "web shop" || told[0].Body["success"] != true ||
		told[0].Body["providerApplicationVersion"] != "1.0/7" {
		t.Errorf("got %v, want a result", told)
	}
	if !slices.Equal(b.Branches(), []string{"feat/x@1.0/7"}) ||
		!slices.Equal(b.Tags(), []string{"dev@1.0/7"}) {
		t.Errorf("got branches %q and tags %q, want one each", b.Branches(), b.Tags())
	}
}
