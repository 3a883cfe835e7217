//go:build pact

package bulklookupclient_test

import (
	_ "github.com/pact-foundation/pact-go/v2/consumer"
	_ "github.com/pact-foundation/pact-go/v2/matchers"
	_ "github.com/pact-foundation/pact-go/v2/models"
	_ "github.com/pact-foundation/pact-go/v2/provider"
)
