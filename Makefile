# make alone lists what there is.
.DEFAULT_GOAL := help

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Without the symbol table and DWARF a program is a third smaller. Stack traces and pprof need neither.
# Without cgo a program runs on every Linux with glibc, however old, whatever it was built on. It needs no C compiler.
# Nor does inlining pay in the clients and types of the AWS SDK, the libraries for containers, the verbs, and services whose calls are few: it costs 3 MB.
OUTLINED := $(foreach p,aws google moby docker vishvananda charmbracelet clipperhouse,-gcflags=github.com/$(p)/...=-l)
OUTLINED += -gcflags=charm.land/...=-l $(foreach p,acm appautoscaling autoscaling bootstrap cloudformation ec2 efs events iam lambda schedules secretsmanager servicediscovery sns ssm top,-gcflags=github.com/pintle/pintle/internal/$(p)/...=-l)
OUTLINED += $(foreach p,cmd/pintle internal/ecr internal/elb,-gcflags=github.com/pintle/pintle/$(p)=-l) # of the last two the API alone
# Functions begin at each 16 bytes, as the processors' makers advise; Go's own 32 cost 0.4 MB.
LINKED := -s -w -funcalign=16
# The test of the programs' sizes builds them likewise.
outlined:
	@echo $(OUTLINED)
linked:
	@echo $(LINKED)

GO_BUILD := CGO_ENABLED=0 go build -v -trimpath -ldflags '$(LINKED)' $(OUTLINED)
# A first build compiles some 700 packages, for minutes; this says how far it is.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
PROGRESS := 2>&1 | awk '/ / { print; fflush() } !/ / && ++n % 50 == 0 { print n " packages are compiled …"; fflush() }'

build: ## build bin/pintle, bin/pintle-shim and the examples' programs
	@echo building bin/pintle
	@$(GO_BUILD) -o bin/pintle ./cmd/pintle $(PROGRESS)
	@echo building bin/pintle-shim
	@$(GO_BUILD) -o bin/pintle-shim ./cmd/pintle-shim $(PROGRESS)
	@echo building bin/gpu-training
	@$(GO_BUILD) -o bin/gpu-training ./examples/2-gpu-training/train $(PROGRESS)
	@echo building bin/recommend
	@$(GO_BUILD) -o bin/recommend ./examples/1-recommender/recommend $(PROGRESS)
	@echo building bin/web-service, and bin/web-service.tar, the image with nothing but it
	@$(GO_BUILD) -o bin/web-service ./examples/4-web-service/web $(PROGRESS)
	@tar --transform 's,^,usr/bin/,' -C bin -cf bin/web-service.tar web-service

# Packages are made by nfpm, which is not among the module's own dependencies.
NFPM := go run github.com/goreleaser/nfpm/v2/cmd/nfpm@v2.41.3
VERSION ?= $(shell sed -n 's/^var version = "\(.*\)"/\1/p' cmd/pintle/main.go)

packages: build ## build dist/*.deb and dist/*.rpm, with units for systemd
	@mkdir -p bin/completion dist
	@bin/pintle completion bash > bin/completion/pintle.bash
	@bin/pintle completion zsh > bin/completion/_pintle
	@bin/pintle completion fish > bin/completion/pintle.fish
	@rm -rf bin/man && bin/pintle man bin/man && gzip -9n bin/man/*
	@for kind in deb rpm; do VERSION=$(VERSION) ARCH=$$(go env GOARCH) $(NFPM) package --config packaging/nfpm.yaml --packager $$kind --target dist/ || exit 1; done

IMAGE := dist/pintle_$(VERSION)_$(shell go env GOARCH).image.tar

image: build ## build dist/*.image.tar, for docker load; it needs no base image
	@go run ./packaging/image -version $(VERSION) -to $(IMAGE)
	@echo "$(IMAGE): docker load -i it, and docs/operations.md has how to run it"

image-test: image ## load the image into a Docker Engine and run it: control plane, agent, a task; needs root, docker and the AWS CLI
	packaging/image-test.sh $(IMAGE)

package-test: packages ## install dist/*.deb in a clean Debian root, run it, and remove it; needs root, debootstrap, systemd-nspawn, rpm and a mirror
	packaging/test.sh

demo: build ## start Pintle with two simulated p3.16xlarge and run a GPU task to its logs
	./examples/demo.sh

test: build lint ## run every test: unit, property, race, and acceptance with aws and boto3
	go test -race -vet=off -timeout 20m ./internal/... ./cmd/... # lint has vetted them
	go test -count=1 -vet=off -timeout 30m -parallel 6 ./test/... # most of the time they wait

soak: build ## kill a service's containers at random for five minutes, the control plane during ten rolling updates, a node of Docker behind a load balancer, and all of a queue-driven fleet, and a function on a queue; damage a thousand files; kill stacks after each write; fill the disk twenty times
	go test -count=1 -timeout 30m -v -run 'TestKillsOfContainers|TestKillsDuringRollingUpdates' ./test -chaos.for 5m -chaos.updates 10
	go test -count=1 -timeout 30m -v -run 'BehindLoadBalancer' ./test -balanced.runtime docker
	go test -count=1 -timeout 60m -run 'Killed|TestUpdatePolicy' ./internal/cloudformation -kills.every 1
	go test -count=1 -timeout 30m -v -run TestRandomDamage ./internal/wal ./internal/sqs/queues ./internal/logs/streams ./internal/cloudwatch/metrics -trials 2000
	go test -count=1 -timeout 30m -v -run TestQueueFleetSurvivesKills ./test -fleet.images 150 -fleet.kills 30
	go test -count=1 -timeout 60m -v -run TestFunctionSurvivesKills ./test -functions.messages 10000 -functions.kills 20
	go test -count=1 -timeout 90m -v -run 'TestDamage$$' ./test -damage.trials 1000
	go test -count=1 -timeout 60m -v -run TestDiskIsFilledAndFreed ./test -disk.times 20

lint: ## check the code's form
	@test -z "$$(gofmt -l cmd internal packaging test bench examples)" || { gofmt -l cmd internal packaging test bench examples; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -checks inherit,-SA1019 ./... # what AWS has deprecated stays

# By number and not by time: Go reports a target that is still making an input smaller when its time is over as failed.
FUZZ := go test -run xxx -fuzztime 100000x -fuzzminimizetime 10x -fuzz
FUZZ_SLOW := go test -run xxx -fuzztime 3000x -fuzzminimizetime 10x -fuzz # where each input takes milliseconds

fuzz: ## fuzz the parsers, some ten seconds each
	$(FUZZ) FuzzParse ./internal/ecs/query
	$(FUZZ) FuzzParse ./internal/logs/filterpattern
	$(FUZZ) FuzzParse ./internal/logs/insights
	$(FUZZ) FuzzParse ./internal/exposition
	$(FUZZ) FuzzParse ./internal/cloudformation/template
	$(FUZZ) FuzzPatch ./internal/cloudformation/cloudcontrol
	$(FUZZ) FuzzParse ./internal/iam/policy
	$(FUZZ) FuzzEvaluate ./internal/iam/policy
	$(FUZZ) FuzzParse ./internal/cloudwatch/metricmath
	$(FUZZ) FuzzParseRule ./internal/cloudwatch/alarm
	$(FUZZ) FuzzParse ./internal/logs/emf
	$(FUZZ) FuzzSchedule ./internal/scaling
	$(FUZZ_SLOW) FuzzPlace ./internal/ecs/placement
	$(FUZZ_SLOW) FuzzReadTrace ./internal/sim
	$(FUZZ) 'FuzzDecode$$' ./internal/acs
	$(FUZZ) 'FuzzDecodeSigned$$' ./internal/acs
	$(FUZZ) FuzzPattern ./internal/elb/routing
	$(FUZZ) FuzzOwn ./internal/node/nameserver
	$(FUZZ) FuzzAnswers ./internal/node/nameserver
	$(FUZZ) FuzzGuard ./internal/sqlitefile
	$(FUZZ) FuzzLog ./internal/sqlitefile
	$(FUZZ) FuzzTree ./internal/sqlitefile
	$(FUZZ) FuzzParse ./internal/node/runtime/shim/program
	$(FUZZ) FuzzParseVariables ./internal/node/engine
	$(FUZZ) FuzzAppendString ./internal/node/runtime/shim/program
	$(FUZZ) FuzzReplay ./internal/state
	$(FUZZ) FuzzParseRecord ./internal/logs/streams
	$(FUZZ) FuzzParseRecord ./internal/cloudwatch/metrics
	$(FUZZ) FuzzBlock ./internal/cloudwatch/metrics
	$(FUZZ_SLOW) FuzzSegment ./internal/wal
	$(FUZZ) FuzzParsePayload ./internal/sqs/queues
	$(FUZZ) FuzzParse ./internal/sns/filterpolicy
	$(FUZZ) FuzzDecodeJSON ./internal/wire/codec
	$(FUZZ) FuzzPlainStrings ./internal/wire/codec
	$(FUZZ) FuzzDecodeCBOR ./internal/wire/codec
	$(FUZZ) FuzzForm ./internal/wire/codec
	$(FUZZ) FuzzChunked ./internal/wire/sign
	$(FUZZ) FuzzXML ./internal/wire/codec
	$(FUZZ) FuzzPath ./internal/wire/rest
	$(FUZZ) FuzzParse ./internal/wire/postpolicy
	$(FUZZ) FuzzCopySource ./internal/s3
	$(FUZZ) FuzzManifest ./internal/ecr
	$(FUZZ) FuzzPolicy ./internal/ecr/lifecycle
	$(FUZZ) FuzzRequest ./internal/ecr/registry
	$(FUZZ) FuzzRead ./internal/ec2/keypair
	$(FUZZ) FuzzAuthorization ./internal/wire/sign

bench: build ## run the benchmarks: over HTTP beside moto's server where it is installed, then package by package
	go run ./bench/api
	go run ./bench/sqs
	go run ./bench/strangers
	go run ./bench/stacks
	go run ./bench/balancer
	go run ./bench/console
	go test -run xxx -bench . -benchmem ./internal/state ./internal/ecs/... ./internal/autoscaling/... ./internal/appautoscaling/... ./internal/cloudformation ./internal/cloudwatch/... ./internal/logs/... ./internal/s3/... ./internal/sqs/... ./internal/sim ./internal/wire/...
	go run ./bench/reaction
	go run ./bench/reaction -queue
	go run ./bench/capacity -reaction fast
	go test -run xxx -bench Start ./internal/node/runtime/process

docs: build ## write docs/coverage.md anew
	./bin/pintle coverage > docs/coverage.md

.PHONY: help outlined linked build packages image image-test package-test demo test soak lint fuzz bench docs
