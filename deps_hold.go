//go:build hold

package gatehouse

import (
	_ "github.com/BurntSushi/toml"
	_ "github.com/alecthomas/kong"
	_ "github.com/asynkron/protoactor-go/actor"
	_ "github.com/fasthttp/router"
	_ "github.com/getkin/kin-openapi/openapi3"
	_ "github.com/google/uuid"
	_ "github.com/hashicorp/golang-lru/v2"
	_ "github.com/jackc/pgx/v5/stdlib"
	_ "github.com/maxmind/mmdbwriter"
	_ "github.com/miekg/dns"
	_ "github.com/nyaruka/phonenumbers"
	_ "github.com/oschwald/maxminddb-golang/v2"
	_ "github.com/pressly/goose/v3"
	_ "github.com/prometheus/client_golang/prometheus/promhttp"
	_ "github.com/sony/gobreaker/v2"
	_ "github.com/valyala/fasthttp/fasthttpadaptor"
	_ "github.com/valyala/fasthttp/pprofhandler"
	_ "github.com/valyala/fastjson"
	_ "go.uber.org/goleak"
	_ "go.yaml.in/yaml/v3"
	_ "golang.org/x/crypto/argon2"
	_ "golang.org/x/net/html"
	_ "golang.org/x/net/idna"
	_ "golang.org/x/oauth2/clientcredentials"
	_ "golang.org/x/text/currency"
	_ "modernc.org/sqlite"
)
