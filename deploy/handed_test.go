//go:build deploy

package deploy_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"gatehouse/providers/sqlstore/pgtest"
)

// have says where the tools of scripts/deploy-tools are, for scripts.
const have = `export PATH=$PWD/.tools/deploy:$PATH
	podman() { command podman --storage-driver vfs --runtime runc --cgroup-manager cgroupfs "$@"; }
	`

// TestPackages: Debian's checks find nothing, and both packages have the same files. An rpm has zsh's
// and the license in other folders, and says nothing about the machine that built it.
func TestPackages(t *testing.T) {
	got := sh(t, have+`scripts/artefacts packages v1.0.0 >/dev/null
		lintian --allow-root --fail-on warning bin/release/gatehouse_1.0.0-1_*.deb
		files() { awk '{ print $1, substr($2, length($2) - 2), $3 }' |
			grep -v -e lintian -e changelog -e /licenses/ | sed s#site-functions#vendor-completions# | sort; }
		for arch in amd64:x86_64 arm64:aarch64; do
			rm -rf $T/tree; dpkg-deb -x bin/release/gatehouse_1.0.0-1_${arch%:*}.deb $T/tree
			find $T/tree -type f -exec bash -c 'echo $(sha256sum <$2 | cut -d" " -f1) $(stat -c %a $2) ${2#$1}' - $T/tree {} \; | files >$T/deb
			rpm=bin/release/gatehouse-1.0.0-1.${arch#*:}.rpm
			rpm -qp --dump $rpm | awk '$5 ~ /^0100/ { print $4, $5, $1 }' | files >$T/rpm
			diff $T/deb $T/rpm; cut -d' ' -f3 $T/deb
			test "$(rpm -qp --qf '%{BUILDHOST} ' $rpm; rpm -qcp $rpm; rpm -qLp $rpm)" = \
				"gatehouse /etc/gatehouse/gatehouse.yaml
/usr/share/licenses/gatehouse/LICENSE"
		done
		dpkg-deb --fsys-tarfile bin/release/gatehouse_1.0.0-1_amd64.deb |
			tar -xO ./usr/share/man/man1/gatehouse.1.gz | gunzip >$T/gatehouse.1
		man --warnings -E UTF-8 -l -Tutf8 -Z $T/gatehouse.1 2>&1 >/dev/null | sed 's/^/warning of man: /'`)
	for _, want := range []string{"/usr/bin/gatehouse\n", "/usr/lib/systemd/system/gatehouse.service\n",
		"/usr/share/man/man1/gatehouse.1.gz\n", "/usr/share/doc/gatehouse/notices.txt.gz\n"} {
		if !strings.Contains(got, want) || strings.Contains(got, "warning") {
			t.Errorf("got %s, want %s and no warnings", got, want)
		}
	}
}

// TestCaddy runs the example as it is, but for ports and the certificate.
func TestCaddy(t *testing.T) {
	checkProxy(t, "127.0.0.1:$public", `
	{ echo "{"; echo "admin off"; echo "http_port $plain"; echo "https_port $tls"; echo "}"
	  sed "s#^id.example.com {#&\ntls $T/cert $T/key#; s#127.0.0.1:8080#127.0.0.1:$public#
		s#health_port 8081#health_port $admin#" $OLDPWD/deploy/balancers/Caddyfile; } >Caddyfile
	HOME=$T caddy validate --config Caddyfile 2>/dev/null
	HOME=$T caddy run --config Caddyfile 2>caddy.log &`)
}

// inContainer returns commands of the handbook about containers for the network, the limits and the
// name of a test.
func inContainer(commands string) string {
	return strings.NewReplacer("-p 127.0.0.1:8080:8080", "--network host --ulimit nofile=20000:20000 "+
		"--ulimit nproc=4096:4096 -e IP_PROVIDER=sim -e GATEHOUSE_LISTEN=127.0.0.1:18480 -e GATEHOUSE_ADMIN_LISTEN=127.0.0.1:18481",
		"-e GATEHOUSE_CLIENT_ID", "-e GATEHOUSE_ADMIN_URL=http://127.0.0.1:18481 -e GATEHOUSE_CLIENT_ID",
		"127.0.0.1:8080", "127.0.0.1:18480", "--name gatehouse", "--name $name", "gatehouse-data", "$name",
		"podman exec gatehouse", "podman exec $name", " gatehouse /gatehouse", " $name /gatehouse",
		"podman run -d", "podman run -d >/dev/null").Replace(commands)
}

// signIn has a shell function: Ada signs in at $url to a new app of the operator's, which gets a token
// for its code and asks for her profile. $gatehouse is the program.
const signIn = `
sign_in() {
	local made id secret query jar form at code token
	made=$($gatehouse client create --name App --redirect-uri https://app.example/callback --scope "openid view-user" --first-party --json)
	id=$(sed -n 's/^ *"client_id": "\(.*\)",$/\1/p' <<<"$made") secret=$(sed -n 's/^ *"client_secret": "\(.*\)",$/\1/p' <<<"$made")
	query="response_type=code&client_id=$id&redirect_uri=https%3A%2F%2Fapp.example%2Fcallback&scope=openid+view-user&state=s"
	jar=$(mktemp)
	form=$(curl -sS -L -b $jar -c $jar "$url/oauth/authorize?$query" | sed -n 's/.*name="form_token" value="\([^"]*\)".*/\1/p')
	at=$(curl -sS -b $jar -c $jar -o /dev/null -w '%{redirect_url}' "$url/login?$query" --data-urlencode "form_token=$form" \
		-d email=ada@example.com --data-urlencode "password=correct horse battery staple")
	while [[ $at == "$url"/* ]]; do at=$(curl -sS -b $jar -c $jar -o /dev/null -w '%{redirect_url}' "$at"); done
	rm $jar
	code=${at#*code=} code=${code%%&*}
	token=$(curl -sS "$url/oauth/token" -u "$id:$secret" -d grant_type=authorization_code -d "code=$code" \
		--data-urlencode redirect_uri=https://app.example/callback | sed -n 's/.*"access_token":"\([^"]*\)".*/\1/p')
	curl -sS "$url/api/user" -H "Authorization: Bearer $token" | sed -n 's/.*"name":"\([^"]*\)".*/signed in: \1/p'; echo
}
`

// TestImages does what the handbook says about containers. Two builds give the same image, which runs
// as a user without rights with a read-only root, says whether it is healthy, and signs people in. So
// does the program for arm64, in an emulator.
func TestImages(t *testing.T) {
	got := sh(t, have+`
		scripts/artefacts image v1.0.0 2>/dev/null | sort >$T/one; scripts/artefacts image v1.0.0 2>/dev/null | sort >$T/two
		cmp $T/one $T/two; wc -l <$T/one
		name=gatehouse-test-$$
		trap 'podman rm -f -t 5 $name >/dev/null 2>&1; podman volume rm -f $name >/dev/null 2>&1' EXIT
		podman rmi -f localhost/gatehouse:v1.0.0-amd64 >/dev/null; cd bin/release
		`+inContainer(block(t, "podman load"))+`
		cd ../..
		for i in $(seq 100); do podman healthcheck run $name >/dev/null 2>&1 && break; sleep 0.5; done
		podman healthcheck run $name && echo healthy
		`+inContainer(block(t, "operate()"))+signIn+`
		url=http://127.0.0.1:18480 gatehouse=operate; sign_in
		podman inspect --format '{{.Config.User}} {{index .Config.Labels "org.opencontainers.image.version"}}' $name
		podman stop -t 30 $name >/dev/null; podman inspect --format '{{.State.ExitCode}}' $name
		arm() { qemu-aarch64-static bin/release/gatehouse-linux-arm64 "$@"; }
		arm version | grep -o 'v1.0.0 .* linux/arm64'
		unset GATEHOUSE_CLIENT_ID GATEHOUSE_CLIENT_SECRET
		export GATEHOUSE_DATABASE_URL=sqlite:$T/arm.db GATEHOUSE_BASE_URL=$url GATEHOUSE_ADMIN_URL=http://127.0.0.1:18481 IP_PROVIDER=sim
		qemu-aarch64-static bin/release/gatehouse-linux-arm64 serve --listen ${url#*//} --admin-listen 127.0.0.1:18481 2>$T/arm.log &
		trap 'kill %1; wait; podman rm -f -t 5 $name >/dev/null 2>&1; podman volume rm -f $name >/dev/null 2>&1' EXIT
		for i in $(seq 100); do arm health >/dev/null 2>&1 && break; sleep 0.5; done
		eval "$(arm init | grep export)"
		echo 'correct horse battery staple' | arm user create --name "Ada Lovelace" --email ada@example.com --password-stdin >/dev/null
		gatehouse=arm; sign_in; curl -sS "$url/api/lookup?q=8.8.8.8" | grep -o '"ip":"8.8.8.8"'; arm backup $T/backup.db | grep -o 'is written'`)
	if !strings.HasPrefix(got, "2\n") || !strings.Contains(got, "healthy\n") ||
		!strings.Contains(got, "signed in: Ada Lovelace\n65532:65532 v1.0.0\n0\n") ||
		!strings.HasSuffix(got, "linux/arm64\nsigned in: Ada Lovelace\n\"ip\":\"8.8.8.8\"\nis written\n") {
		t.Errorf("got %s, want two images, a person in one of them, user 65532, its end with 0, and the same of arm64", got)
	}
	t.Log(got)
}

// noData are the expressions of dashboards that have no data in TestDashboardData, and why.
var noData = map[string]string{
	"gatehouse: identity, Codes requested":                        "nobody asks for a code",
	"gatehouse: identity, Messages to people":                     "there is no messenger",
	"gatehouse: identity, Audit webhook: age of the oldest event": "there is no webhook",
	"gatehouse: lookups, Refused":                                 "the simulator has no budget",
	"gatehouse: lookups, Reverse names":                           "the simulator knows them",
	"gatehouse: overview, Certificates end in":                    "the proxy has the certificate",
}

// TestDashboardData runs a node of a cluster, with lookups and a sign-in, and asks Prometheus for each
// expression of the dashboards.
func TestDashboardData(t *testing.T) {
	var all strings.Builder
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, target := range p.Targets {
				fmt.Fprintf(&all, "%s, %s|%s\n", d.Title, p.Title,
					strings.ReplaceAll(target.Expr, "$__rate_interval", "1m"))
			}
		}
	}
	list := filepath.Join(t.TempDir(), "list")
	if err := os.WriteFile(list, []byte(all.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	got := sh(t, signIn+`
		cd $T
		port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
		public=$(port) admin=$(port) prometheus=$(port)
		stop() { kill $(jobs -p) 2>/dev/null || true; wait || true; }
		trap stop EXIT
		(umask 077; head -c 32 /dev/urandom | base64 >key)
		export GATEHOUSE_DATABASE_URL='`+pgtest.Start(t)+`' GATEHOUSE_KEY_FILE=$T/key
		export GATEHOUSE_BASE_URL=http://127.0.0.1:$public GATEHOUSE_ADMIN_URL=http://127.0.0.1:$admin
		IP_PROVIDER=sim $BUILT/gatehouse serve --listen 127.0.0.1:$public --admin-listen 127.0.0.1:$admin \
			--cluster-listen 127.0.0.1:$(port) 2>log &
		for i in $(seq 600); do $BUILT/gatehouse health >/dev/null 2>&1 && break; sleep 0.1; done
		cat >prometheus.yml <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
scrape_configs:
  - job_name: gatehouse
    static_configs: [{targets: ["127.0.0.1:$admin"]}]
END
		prometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:$prometheus 2>prometheus.log &
		eval "$($BUILT/gatehouse init | grep export)"
		echo 'correct horse battery staple' | $BUILT/gatehouse user create --name "Ada Lovelace" --email ada@example.com --password-stdin >/dev/null
		url=$GATEHOUSE_BASE_URL gatehouse=$BUILT/gatehouse
		load() { # twice: a counter that is new has no rate
			sign_in >/dev/null
			curl -sS -o /dev/null "$url/oauth/token" -u a:b -d grant_type=client_credentials
			for q in 8.8.8.8 8.8.4.4 8.8.8.8 10.0.0.1 nonsense; do curl -sS -o /dev/null "$url/api/lookup?q=$q"; done
			sleep 3
		}
		load; load; load
		while IFS='|' read -r title expression; do
			found=$(curl -sS http://127.0.0.1:$prometheus/api/v1/query --data-urlencode "query=$expression")
			[[ $found == *'"status":"success"'* ]] || echo "wrong $title: $found"
			[[ $found == *'"result":[]'* ]] && echo "empty $title"
		done <`+list+` || true`)
	for line := range strings.Lines(got) {
		line = strings.TrimSpace(line)
		if title, empty := strings.CutPrefix(line, "empty "); !empty || noData[title] == "" {
			t.Error(line)
		}
	}
}

// TestManifests: kustomize renders the manifests, as does kubectl if there is one, and Kubernetes' own
// schemas know each field.
func TestManifests(t *testing.T) {
	got := sh(t, have+`cp -r deploy/kubernetes $T/id; cd $T/id
		head -c 32 /dev/urandom | base64 >gatehouse.key; echo postgres://a:b@c/d >database-url
		kustomize build . >$T/all.yaml
		! command -v kubectl >/dev/null || kubectl kustomize . | cmp - $T/all.yaml
		swagger=$(go mod download -json k8s.io/kubernetes@v1.34.1 | python3 -c 'import json, sys; print(json.load(sys.stdin)["Dir"])')/api/openapi-spec/swagger.json
		python3 - $swagger $T/schemas <<'END'
import json, os, sys
document = json.load(open(sys.argv[1]))
text = json.dumps(document["definitions"])
definitions = json.loads(text)
for d in definitions.values():
    if "properties" in d:
        d["additionalProperties"] = False
definitions["io.k8s.apimachinery.pkg.util.intstr.IntOrString"] = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
os.makedirs(sys.argv[2])
for name, d in definitions.items():
    for kind in d.get("x-kubernetes-group-version-kind", []):
        group = kind["group"].split(".")[0]
        file = "-".join(filter(None, [kind["kind"].lower(), group, kind["version"]])) + ".json"
        json.dump({"$ref": "#/definitions/" + name, "definitions": definitions}, open(os.path.join(sys.argv[2], file), "w")) \
            if kind["kind"] in ("Deployment", "Service", "PodDisruptionBudget", "NetworkPolicy", "Job", "ConfigMap", "Secret", "ServiceAccount", "Namespace") else None
END
		kubeconform -strict -summary -schema-location "$T/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" $T/all.yaml
		sed 's/maxUnavailable: 1/maxUnavailble: 1/' $T/all.yaml >$T/wrong.yaml
		kubeconform -strict -schema-location "$T/schemas/{{.ResourceKind}}{{.KindSuffix}}.json" $T/wrong.yaml && echo wrong accepted || true`)
	if !strings.Contains(got, "Valid: 9, Invalid: 0, Errors: 0, Skipped: 0") || strings.Contains(got, "wrong accepted") ||
		!strings.Contains(got, "maxUnavailble") {
		t.Errorf("got %s, want nine valid manifests, and a wrong field refused", got)
	}
}

// TestRelease builds a release, which refuses if two builds differ, and verifies it as its users do.
func TestRelease(t *testing.T) {
	got := sh(t, have+`git clone -q . $T/clone; cd $T/clone; ln -s $OLDPWD/.tools .tools
		ssh-keygen -q -t ed25519 -N '' -f $T/key
		SIGNING_KEY=$T/key scripts/release v1.0.0 >&2
		cd bin/release-v1.0.0; echo "gatehouse $(cat $T/key.pub)" >$T/allowed
		ssh-keygen -Y verify -f $T/allowed -I gatehouse -n gatehouse -s SHA256SUMS.sig <SHA256SUMS >&2
		sha256sum --check --quiet SHA256SUMS; ls
		tar -xzf gatehouse-v1.0.0-linux-amd64.tar.gz; gatehouse-v1.0.0-linux-amd64/gatehouse version
		tar -tzf gatehouse-v1.0.0-handbook.tar.gz
		go version -m gatehouse-v1.0.0-linux-amd64/gatehouse | grep -o 'vcs.modified=.*'
		echo >>SHA256SUMS; ssh-keygen -Y verify -f $T/allowed -I gatehouse -n gatehouse -s SHA256SUMS.sig <SHA256SUMS && echo accepted || true`)
	for _, want := range []string{"darwin-arm64.tar.gz\n", "windows-amd64.tar.gz\n", "linux-arm64.tar.gz\n",
		"x86_64.rpm\n", "windows-amd64.exe.spdx.json\n", "gatehouse v1.0.0 go", "vcs.modified=false\n",
		"/deploy/kubernetes/kustomization.yaml\n"} {
		if !strings.Contains(got, want) || strings.Contains(got, "accepted") {
			t.Errorf("got %s, want %s, and a changed list of checksums refused", got, want)
		}
	}
}

// block returns the first block of operations.md that has a text.
func block(t *testing.T, text string) string {
	t.Helper()
	for i, b := range strings.Split(read(t, "../docs/operations.md"), "```") {
		if _, body, _ := strings.Cut(b, "\n"); i%2 == 1 && strings.Contains(body, text) {
			return body
		}
	}
	t.Fatalf("docs/operations.md has no block with %q", text)
	return ""
}

// watch returns a script that starts Prometheus with what the handbook says, asking each second, and
// rules that wait two seconds. alerts prints its alerts.
func watch(t *testing.T) string {
	t.Helper()
	return "cd /root; sed 's/for: .*/for: 2s/' /usr/share/doc/gatehouse/examples/alerts.yml >alerts.yml\n" +
		"cat >prometheus.yml <<'END'\nglobal: {scrape_interval: 1s, evaluation_interval: 1s}\n" +
		strings.Replace(block(t, `targets: ["127.0.0.1:8081"]`), "/usr/share/doc/gatehouse/examples/alerts.yml", "/root/alerts.yml", 1) +
		"END\nprometheus --config.file=prometheus.yml --storage.tsdb.path=data --web.listen-address=127.0.0.1:9099 2>prometheus.log &\n" +
		"alerts() { curl -sS http://127.0.0.1:9099/api/v1/alerts; echo; }\n" +
		"for i in $(seq 60); do curl -sS 'http://127.0.0.1:9099/api/v1/query?query=up' | grep '\"1\"' && break; sleep 1; done\n" +
		"sleep 5; alerts | grep '\"alerts\":\\[\\]'\n"
}

// TestInstall does what the handbook says about systemd in a new Debian that boots in a container:
// from the package to an app's token, and to an alert. Then the rpm takes the place of the deb.
func TestInstall(t *testing.T) {
	dir := t.TempDir()
	// A booted machine shares mounts, which credentials need; systemd leaves that to containers.
	script := "mount --make-rshared /; set -euxo pipefail; cd /root\nexport DEBIAN_FRONTEND=noninteractive\n" +
		"for i in $(seq 60); do systemctl is-active -q postgresql@15-main && break; sleep 1; done\n" +
		"openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=id.example.com " +
		"-addext subjectAltName=DNS:id.example.com -days 1 -keyout /etc/nginx/gatehouse.key -out /etc/nginx/gatehouse.crt\n" +
		"cp /etc/nginx/gatehouse.crt /usr/local/share/ca-certificates/id.crt; update-ca-certificates >/dev/null\n" +
		"echo 127.0.0.1 id.example.com >>/etc/hosts; date +start:%s\n" +
		strings.ReplaceAll(block(t, "apt-get install ./gatehouse"), "apt-get install ./gatehouse_1.0.0-1_amd64.deb nginx-light postgresql",
			"dpkg -i gatehouse_1.0.0-1_amd64.deb") +
		"for i in $(seq 60); do gatehouse health && break; sleep 1; done\n" +
		block(t, "examples/nginx.conf") + block(t, "gatehouse init --config") +
		"gatehouse client list; date +done:%s\n" +
		"curl -sS https://id.example.com/.well-known/openid-configuration | grep -o '\"issuer\":\"[^\"]*\"'\n" +
		"curl -sS -o /dev/null -w 'sign-in page %{http_code}\\n' https://id.example.com/login\n" +
		signIn + "set +x; url=https://id.example.com gatehouse=gatehouse; sign_in; date +signed-in:%s; set -x\n" +
		watch(t) +
		"systemd-analyze security --threshold=15 gatehouse | tail -1; stat -c %U /proc/$(systemctl show -p MainPID --value gatehouse)\n" +
		"systemctl stop gatehouse; date +stopped:%s; systemctl show gatehouse -p Result -p ExecMainStatus\n" +
		"for i in $(seq 60); do alerts | grep -q '\"alertname\":\"GatehouseDown\".*\"state\":\"firing\"' && break; sleep 1; done\n" +
		"alerts; date +alert:%s\n" +
		// The rpm after the deb, with its settings; once more as an upgrade; and removed.
		"dpkg -r gatehouse; rpm -i --nodeps gatehouse-1.0.0-1.x86_64.rpm; systemctl enable --now gatehouse\n" +
		"ready() { for i in $(seq 60); do gatehouse health && return; sleep 1; done; }\n" +
		"ready; set +x; echo \"by rpm: $(sign_in)\"; set -x; main=$(systemctl show -p MainPID --value gatehouse)\n" +
		"rpm -U --nodeps --replacepkgs gatehouse-1.0.0-1.x86_64.rpm; ready\n" +
		"test $main != $(systemctl show -p MainPID --value gatehouse); rpm -e gatehouse\n" +
		"systemctl show gatehouse -p ActiveState -p LoadState; ls /etc/gatehouse; test ! -e /usr/share/doc/gatehouse\n"
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	root := os.Getenv("DEBIAN_ROOT")
	out, err := exec.Command("bash", "-euo", "pipefail", "-c", "cd ..;"+have+`
		T=`+dir+` root=`+root+`
		ls bin/release/gatehouse_1.0.0-1_amd64.deb >/dev/null 2>&1 || scripts/artefacts packages v1.0.0 >&2
		if [ -z "$root" ]; then
			root=$T/root.tar
			mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,nginx-light,postgresql,curl,openssl,ca-certificates,prometheus,passwd,util-linux,procps,rpm bookworm $root
		fi
		name=gatehouse-install-$$
		podman import $root $name >/dev/null 2>&1
		trap 'podman rm -f -t 5 $name >/dev/null 2>&1; podman rmi -f $name >/dev/null 2>&1' EXIT
		podman run -d --name $name --systemd=always --cap-add sys_admin --security-opt seccomp=unconfined \
			--security-opt unmask=ALL --network none --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 $name /sbin/init >/dev/null
		podman cp bin/release/gatehouse_1.0.0-1_amd64.deb $name:/root/
		podman cp bin/release/gatehouse-1.0.0-1.x86_64.rpm $name:/root/
		podman cp $T/script $name:/root/script
		podman exec $name bash /root/script || { podman exec $name journalctl -u gatehouse -u nginx --no-pager | tail -40; exit 1; }`).CombinedOutput()
	t.Logf("%s", out)
	for _, want := range []string{`"issuer":"https://id.example.com"`, "sign-in page 200", "Result=success", "Operator",
		"signed in: Ada Lovelace\n", `"alertname":"GatehouseDown","instance":"127.0.0.1:8081"`,
		"by rpm: signed in: Ada Lovelace\n", "LoadState=not-found\nActiveState=inactive\n", "\ngatehouse.key\n"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
