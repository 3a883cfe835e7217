//go:build deploy

package deploy_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// have says where the tools of scripts/deploy-tools are, for scripts.
const have = `export PATH=$PWD/.tools/deploy:$PATH
	podman() { command podman --storage-driver vfs --runtime runc --cgroup-manager cgroupfs "$@"; }
	`

// TestPackages: Debian's checks find nothing, and both packages have the same files.
func TestPackages(t *testing.T) {
	got := sh(t, have+`scripts/artefacts packages v1.0.0 >/dev/null
		lintian --allow-root --fail-on warning bin/release/gatehouse_1.0.0-1_*.deb
		dpkg-deb -c bin/release/gatehouse_1.0.0-1_amd64.deb | awk '$1 !~ /^d/ { print $6 }' | sed 's/^.//' |
			grep -v -e lintian -e changelog | sort >$T/deb
		rpm -qlp bin/release/gatehouse-1.0.0-1.x86_64.rpm | grep -v '^/etc/gatehouse$' | sort >$T/rpm
		diff $T/deb $T/rpm; cat $T/deb
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

// TestImages: two builds give the same image, which runs as a user without rights with a read-only
// root, and says whether it is healthy.
func TestImages(t *testing.T) {
	got := sh(t, have+`
		scripts/artefacts image v1.0.0 2>/dev/null | sort >$T/one; scripts/artefacts image v1.0.0 2>/dev/null | sort >$T/two
		cmp $T/one $T/two; wc -l <$T/one
		run() { podman run --network host --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 --read-only \
			--cap-drop all --security-opt no-new-privileges "$@"; }
		name=gatehouse-test-$$
		trap 'podman rm -f -t 5 $name >/dev/null 2>&1; podman volume rm -f $name >/dev/null 2>&1' EXIT
		run -d --name $name -v $name:/data -e GATEHOUSE_BASE_URL=https://id.example.com \
			-e GATEHOUSE_LISTEN=127.0.0.1:18480 -e GATEHOUSE_ADMIN_LISTEN=127.0.0.1:18481 -e IP_PROVIDER=sim \
			--health-cmd 'CMD /gatehouse health' localhost/gatehouse:v1.0.0-amd64 >/dev/null
		for i in $(seq 100); do podman healthcheck run $name >/dev/null 2>&1 && break; sleep 0.5; done
		podman healthcheck run $name && echo healthy
		podman exec $name /gatehouse init | grep -c export
		podman inspect --format '{{.Config.User}} {{index .Config.Labels "org.opencontainers.image.version"}}' $name
		podman stop -t 30 $name >/dev/null; podman inspect --format '{{.State.ExitCode}}' $name
		qemu-aarch64-static bin/release/gatehouse-linux-arm64 version | grep -o 'v1.0.0 .* linux/arm64'`)
	if !strings.HasPrefix(got, "2\n") || !strings.Contains(got, "healthy\n2\n65532:65532 v1.0.0\n0\n") {
		t.Errorf("got %s, want two images, one of them healthy as user 65532, and its end with 0", got)
	}
	t.Log(got)
}

// TestManifests: kustomize renders the manifests, and Kubernetes' own schemas know each field.
func TestManifests(t *testing.T) {
	got := sh(t, have+`cp -r deploy/kubernetes $T/id; cd $T/id
		head -c 32 /dev/urandom | base64 >gatehouse.key; echo postgres://a:b@c/d >database-url
		kustomize build . >$T/all.yaml
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
		go version -m gatehouse-v1.0.0-linux-amd64/gatehouse | grep -o 'vcs.modified=.*'
		echo >>SHA256SUMS; ssh-keygen -Y verify -f $T/allowed -I gatehouse -n gatehouse -s SHA256SUMS.sig <SHA256SUMS && echo accepted || true`)
	for _, want := range []string{"darwin-arm64.tar.gz\n", "windows-amd64.tar.gz\n", "linux-arm64.tar.gz\n",
		"x86_64.rpm\n", "windows-amd64.exe.spdx.json\n", "gatehouse v1.0.0 go", "vcs.modified=false\n"} {
		if !strings.Contains(got, want) || strings.Contains(got, "accepted") {
			t.Errorf("got %s, want %s, and a changed list of checksums refused", got, want)
		}
	}
}

// block returns the block of operations.md that has a text.
func block(t *testing.T, text string) string {
	t.Helper()
	for _, b := range strings.Split(read(t, "../docs/operations.md"), "```") {
		if body, ok := strings.CutPrefix(b, "text\n"); ok && strings.Contains(body, text) {
			return body
		}
	}
	t.Fatalf("docs/operations.md has no block with %q", text)
	return ""
}

// TestInstall does what the handbook says about systemd in a new Debian that boots in a container:
// from the package to an app's token, and to an alert.
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
		"systemd-analyze security gatehouse | tail -1; stat -c %U /proc/$(systemctl show -p MainPID --value gatehouse)\n" +
		"systemctl stop gatehouse; systemctl show gatehouse -p Result -p ExecMainStatus\n"
	if err := os.WriteFile(filepath.Join(dir, "script"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	root := os.Getenv("DEBIAN_ROOT")
	out, err := exec.Command("bash", "-euo", "pipefail", "-c", "cd ..;"+have+`
		T=`+dir+` root=`+root+`
		ls bin/release/gatehouse_1.0.0-1_amd64.deb >/dev/null 2>&1 || scripts/artefacts packages v1.0.0 >&2
		if [ -z "$root" ]; then
			root=$T/root.tar
			mmdebstrap --quiet --variant=minbase --include=systemd,systemd-sysv,dbus,nginx-light,postgresql,curl,openssl,ca-certificates,prometheus,passwd,util-linux,procps bookworm $root
		fi
		name=gatehouse-install-$$
		podman import $root $name >/dev/null 2>&1
		trap 'podman rm -f -t 5 $name >/dev/null 2>&1; podman rmi -f $name >/dev/null 2>&1' EXIT
		podman run -d --name $name --systemd=always --cap-add sys_admin --security-opt seccomp=unconfined \
			--security-opt unmask=ALL --network none --ulimit nofile=20000:20000 --ulimit nproc=4096:4096 $name /sbin/init >/dev/null
		podman cp bin/release/gatehouse_1.0.0-1_amd64.deb $name:/root/
		podman cp $T/script $name:/root/script
		podman exec $name bash /root/script || { podman exec $name journalctl -u gatehouse -u nginx --no-pager | tail -40; exit 1; }`).CombinedOutput()
	t.Logf("%s", out)
	for _, want := range []string{`"issuer":"https://id.example.com"`, "sign-in page 200", "Result=success", "Operator"} {
		if err != nil || !strings.Contains(string(out), want) {
			t.Errorf("got error %v, want %s", err, want)
		}
	}
}
