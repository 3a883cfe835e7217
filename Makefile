.DEFAULT_GOAL := help
.PHONY: help build run demo-cluster setup pact-lib contract-tools contracts pactcheck pactcheck-dist test test-nodes test-clients test-long fuzz bench compare load notices packages image release test-deploy lint clean

VERSION  := $(shell git describe --tags --always --dirty 2>/dev/null)
FUZZTIME := 30s
# What make test-long repeats: in full, or with SHORT=1 once or a few times.
long = $(if $(SHORT),$2,$1)
PACTLIB  := $(CURDIR)/.tools/pact
# Not CGO_LDFLAGS: the Go command would rebuild the standard library for it. Not GOGC=400 as below: the
# mutants would fill 3 GB instead of 0.4, and take as long.
PACTENV  := CGO_ENABLED=1 LIBRARY_PATH=$(PACTLIB) LD_LIBRARY_PATH=$(PACTLIB) PACT_DO_NOT_TRACK=true PACT_LOG_LEVEL=ERROR

# With these tags net and os/user are the same with cgo and without, so that Go compiles once for the
# static program and for what needs cgo. Flags on the command line replace those in the variable. All
# is built with -trimpath, as a release is, so that tests and lint share what Go compiles.
PURE := netgo,osusergo
export GOFLAGS += -tags=$(PURE) -trimpath

# A program with the race detector sleeps a second before its end, and each package is one. Heaps of
# tests are small: fewer collections save a tenth of the processor time.
RACEENV  := CGO_ENABLED=1 GORACE=atexit_sleep_ms=50 GOGC=400
# SQLite, its C library and its allocator are C translated to Go. The race detector sees the heap of Go
# but not theirs, and makes them several times slower. What it could see there is a connection that two
# goroutines use at once, which database/sql does not allow. It stays on in the C library of the
# programs that make test-long starts (cmd/gatehouse/main_test.go). argon2 mixes memory of its own.
RACE := -race $(foreach package,modernc.org/sqlite/lib modernc.org/libc modernc.org/memory \
	golang.org/x/crypto/argon2,-gcflags=$(package)=-race=false)

help: ## Say what can be made (the default)
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build: ## Build the static binary bin/gatehouse
	CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/gatehouse ./cmd/gatehouse

run: build ## Build, then serve a demo with a simulated upstream
	bin/gatehouse demo

demo-cluster: build ## Run a demo of three nodes with PostgreSQL and a balancer
	go build -o bin/demo-cluster ./loadtest/nodes/demo
	bin/demo-cluster

setup: ## Install what the tests need, or say what is missing
	scripts/setup

pact-lib: ## Fetch the library that contract tests are linked with
	scripts/pact-lib

contract-tools:
	scripts/contract-tools

contracts: pact-lib contract-tools ## Check the contracts with client programs and with the upstream
	$(PACTENV) scripts/contracts

pactcheck: ## Build the static bin/pactcheck, which verifies pacts of client programs
	CGO_ENABLED=0 go build -ldflags '-s -w -X main.version=$(VERSION)' -o bin/pactcheck ./contracts/pactcheck

pactcheck-dist: ## Pack pactcheck for Linux, macOS and Windows, for teams without a checkout
	scripts/pactcheck-dist bin linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64

# Without the race detector: documents, pages and measuring programs, which are no part of the service,
# and the cluster with gRPC, which the detector does not pass. loadtest itself is shipped: it has it.
PLAIN = ./docs $(filter-out gatehouse/loadtest,$(shell go list ./loadtest/... ./httpedge/pages/... ./deploy/...)) \
	./providers/cluster

# The packages that take longest come first. make lint runs every analyzer that go test would run.
test: setup pact-lib contract-tools ## Run every test, those of the service with the race detector (11 to 18 minutes on two processors)
	$(PACTENV) scripts/contracts $(PLAIN)
	go test -vet=off -run 'Allocate|HoldLittle|MemoryPerActor' ./httpedge ./actors/lookup ./actors/token
	$(RACEENV) go test $(RACE) -vet=off -p 4 -timeout 30m ./cmd/gatehouse ./providers/sqlstore \
		./providers/cluster ./cmd/stack/stacktest ./httpedge/signin ./httpedge/oauthapi \
		$$(go list ./... | grep -vxF "$$(go list ./contracts/... $(PLAIN))")

test-nodes: setup pact-lib contract-tools ## Run the HTTP tests and a part of the contracts with three nodes
	$(PACTENV) RACE='$(RACE)' scripts/nodes

test-clients: setup ## Sign in with published programs and a real browser (a few minutes)
	scripts/programs
	go test -tags programs,$(PURE) -count 1 -timeout 30m ./cmd/stack/stacktest/programs

test-long: setup pact-lib build ## Repeat the tests, soak and kill servers, break clusters, test-deploy, fuzz (SHORT=1: each a little)
	CGO_ENABLED=1 go test $(RACE) -count $(call long,5,1) -timeout 60m ./...
	go test -count $(call long,5,1) -timeout 60m ./providers/cluster
	$(PACTENV) RACE='$(RACE)' scripts/contracts ./docs
	CGO_ENABLED=1 go test $(RACE) -timeout 60m ./cmd/gatehouse -program-race
	CGO_ENABLED=1 go test $(RACE) -timeout 60m -run Soak ./cmd/gatehouse -program-race -soak $(call long,5m,5s)
	CGO_ENABLED=1 go test $(RACE) -timeout 60m -run 'TestCrash|TestCacheFileOutlivesKills' ./cmd/gatehouse -program-race -crashes $(call long,50,3)
	go test -timeout 60m -run TestOutages ./cmd/gatehouse/bulk -lines $(call long,10000000,20000)
	go test -timeout 60m -run TestLookupResume ./cmd/gatehouse -interruptions $(call long,50,4)
	go test -timeout 60m -run Mishaps ./cmd/gatehouse -mishaps $(call long,100,12)
	go test -timeout 60m -run TestApplyMany ./cmd/gatehouse -declared $(call long,1000,210)
	scripts/reader-tools
	go run ./loadtest/readers check -program bin/gatehouse -rows $(call long,100000,1000)
	go test -timeout 90m -run TestUserImportMany ./cmd/gatehouse -people $(call long,1000000,400)
	go run ./loadtest/nodes/run -rounds $(call long,10000,20) -faults $(call long,10m,20s) -active $(call long,1000000,10000)
	scripts/last-release bin/last-release
	go run ./loadtest/nodes/run -old bin/last-release versions
	go test -timeout 60m -run 'TestSimulation$$' ./actors/partition -schedules $(call long,200000,500)
	$(MAKE) test-deploy
	$(PACTENV) RACE='$(RACE)' scripts/nodes $(call long,all)
	scripts/fuzz $(call long,5m,5s)

fuzz: ## Fuzz each target for FUZZTIME (30s)
	scripts/fuzz $(FUZZTIME)

bench: ## Run the benchmarks
	go test -run '^$$' -bench . -benchmem ./...

compare: ## Measure lookups, profiles and tokens relative to raw fasthttp
	go run ./loadtest/compare

load: build ## Run a short round of every load scenario, with thresholds
	go build -ldflags '-X main.version=$(VERSION)' -o bin/loadtest ./cmd/loadtest
	bin/loadtest round

notices: ## Write the licenses of what is linked, for the commands licenses
	for folder in cmd/gatehouse contracts/pactcheck; do \
		go run ./deploy/make notices ./$$folder >$$folder/notices.txt.new && \
		mv $$folder/notices.txt.new $$folder/notices.txt || exit; \
	done

packages: ## Build deb and rpm for amd64 and arm64 (VERSION=v1.2.3)
	scripts/deploy-tools
	scripts/artefacts packages $(VERSION)

image: ## Build container images for amd64 and arm64 (VERSION=v1.2.3)
	scripts/deploy-tools
	scripts/artefacts image $(VERSION)

release: ## Build a release in two folders, compare, sign (VERSION=v1.2.3 SIGNING_KEY=file)
	scripts/deploy-tools
	SIGNING_KEY=$(SIGNING_KEY) scripts/release $(VERSION)

test-deploy: ## Try packages, images, manifests, dashboards and a release (half an hour)
	scripts/deploy-tools
	go test -tags deploy,$(PURE) -vet=off -count 1 -timeout 90m ./deploy

# Without cgo and for Windows all is compiled but not linked, and for Windows not optimized either.
lint: ## Check format, vet, staticcheck, go.mod and the build without cgo
	test -z "$$(gofmt -l . | tee /dev/stderr)"
	go vet -tags pact,programs,deploy,$(PURE) ./...
	CGO_ENABLED=0 go build -C tools -o ../bin/staticcheck honnef.co/go/tools/cmd/staticcheck
	bin/staticcheck -tags pact,programs,deploy,$(PURE) ./...
	go mod tidy -diff
	CGO_ENABLED=0 go list -export ./... >/dev/null
	CGO_ENABLED=0 GOOS=windows go list -export -gcflags 'all=-N -l -dwarf=false' ./contracts/pactcheck >/dev/null

clean: ## Remove what was built
	rm -rf bin
