package deploy_test

import (
	"strings"
	"testing"
)

// inFrontOf starts gatehouse and the proxy that start names, asks for the address of a caller who
// pretends to have another, and stops both.
const inFrontOf = `
	cd $T
	openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=id.example.com \
		-addext subjectAltName=DNS:id.example.com -days 1 -keyout key -out cert 2>/dev/null
	cat cert key >pem
	port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
	plain=$(port) tls=$(port) public=$(port) admin=$(port)
	stop() { kill $(jobs -p) 2>/dev/null || true; wait || true; }
	trap stop EXIT
	IP_PROVIDER=sim $BUILT/gatehouse serve --base-url https://id.example.com --listen "$LISTEN" \
		--admin-listen 127.0.0.1:$admin --trusted-proxies 127.0.0.1/32 2>log &
	for i in $(seq 300); do
		$BUILT/gatehouse health --admin-url http://127.0.0.1:$admin >/dev/null 2>&1 && break; sleep 0.1
	done
	START
	ask() { curl -sS --retry 5 --retry-delay 1 --retry-all-errors --max-time 60 --cacert cert --noproxy '*' \
		--resolve id.example.com:$tls:127.0.0.1 https://id.example.com:$tls"$@"; }
	ask /api/my-ip -H 'X-Forwarded-For: 8.8.8.8' -H 'Forwarded: for=8.8.8.8'; echo
	ask '/api/lookup?q=8.8.4.4' -o /dev/null -w '%{http_code}\n'
	ask /.well-known/openid-configuration | grep -o '"issuer":"[^"]*"'
	curl -sS --noproxy '*' -o /dev/null -w '%{http_code} %{redirect_url}\n' -H 'Host: id.example.com' \
		http://127.0.0.1:$plain/oauth/token?a=b | sed "s#:$tls/#/#"
`

// TestBalancers runs the examples as they are, but for addresses and the certificate.
func TestBalancers(t *testing.T) {
	for _, c := range []struct{ name, listen, start string }{
		{"nginx", "unix:$T/socket", `
	{ [ $(id -u) != 0 ] || echo "user $(id -un);"
	  echo "daemon off; pid $T/pid; error_log $T/errors; events {} http { access_log off;"
	  sed "s#/etc/nginx/gatehouse.#$T/#; s#$T/crt#$T/cert#; s#listen 80;#listen 127.0.0.1:$plain;#
		s#listen 443 ssl#listen 127.0.0.1:$tls ssl#; s#unix:/run/gatehouse/public.sock#unix:$T/socket#" \
		$OLDPWD/deploy/balancers/nginx.conf; echo "}"; } >nginx.conf
	nginx -c $T/nginx.conf -p $T &`},
		{"haproxy", "127.0.0.1:$public", `
	sed "s#:443 ssl crt /etc/haproxy/gatehouse.pem#127.0.0.1:$tls ssl crt $T/pem#; s#bind :80#bind 127.0.0.1:$plain#
		s#check port 8081#check port $admin#; s#10.0.0.[789]:8080#127.0.0.1:$public#" \
		$OLDPWD/deploy/balancers/haproxy.cfg >haproxy.cfg
	haproxy -db -f haproxy.cfg &`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			checkProxy(t, c.listen, c.start)
		})
	}
}

// checkProxy starts gatehouse with an address and a proxy by a script, and asks through it.
func checkProxy(t *testing.T, listen, start string) {
	t.Helper()
	got := sh(t, strings.NewReplacer("$LISTEN", listen, "START", start).Replace(inFrontOf))
	for _, want := range []string{`"reason":"reserved_range"`, "\n200\n",
		`"issuer":"https://id.example.com"`, "308 https://id.example.com/oauth/token?a=b"} {
		if !strings.Contains(got, want) || strings.Contains(got, `"query":"8.8.8.8"`) {
			t.Errorf("got %s, want %s and not the caller's pretended address", got, want)
		}
	}
}
