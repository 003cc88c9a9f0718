# make alone lists what there is.
.DEFAULT_GOAL := help
export CGO_CFLAGS := -O2 -Wno-deprecated-declarations

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# Without the symbol table and DWARF a program is a third smaller. Stack traces and pprof need neither.
GO_BUILD := go build -trimpath -ldflags '-s -w'

build: ## build bin/pintle, bin/pintle-shim and the examples' programs
	$(GO_BUILD) -o bin/pintle ./cmd/pintle
	CGO_ENABLED=0 $(GO_BUILD) -o bin/pintle-shim ./cmd/pintle-shim
	CGO_ENABLED=0 $(GO_BUILD) -o bin/gpu-training ./examples/2-gpu-training/train

demo: build ## start Pintle with two simulated p3.16xlarge and run a GPU task to its logs
	./examples/demo.sh

test: build lint ## run every test: unit, property, race, and acceptance with aws and boto3
	go test -race ./internal/... ./cmd/...
	go test -count=1 -timeout 30m -parallel 4 ./test/... # most of the time they wait

soak: build ## kill a service's containers at random for five minutes, the control plane during ten rolling updates, and all of a queue-driven fleet; damage a thousand files; fill the disk twenty times
	go test -count=1 -timeout 30m -v -run 'TestKillsOfContainers|TestKillsDuringRollingUpdates' ./test -chaos.for 5m -chaos.updates 10
	go test -count=1 -timeout 30m -v -run TestRandomDamage ./internal/wal ./internal/sqs/queues ./internal/logs/streams ./internal/cloudwatch/metrics -trials 2000
	go test -count=1 -timeout 30m -v -run TestQueueFleetSurvivesKills ./test -fleet.images 150 -fleet.kills 30
	go test -count=1 -timeout 90m -v -run 'TestDamage$$' ./test -damage.trials 1000
	go test -count=1 -timeout 60m -v -run TestDiskIsFilledAndFreed ./test -disk.times 20

lint: ## check the code's form
	@test -z "$$(gofmt -l cmd internal test bench examples)" || { gofmt -l cmd internal test bench examples; echo 'run gofmt -w on these'; exit 1; }
	go vet ./...
	go run honnef.co/go/tools/cmd/staticcheck@v0.8.2 -checks inherit,-SA1019 ./... # what AWS has deprecated stays

fuzz: ## fuzz the parsers, ten seconds each
	go test -run xxx -fuzz FuzzParse -fuzztime 10s ./internal/ecs/query
	go test -run xxx -fuzz FuzzParse -fuzztime 10s ./internal/logs/filterpattern
	go test -run xxx -fuzz FuzzParse -fuzztime 10s -fuzzminimizetime 10x ./internal/cloudwatch/metricmath
	go test -run xxx -fuzz FuzzParseRule -fuzztime 10s ./internal/cloudwatch/alarm
	go test -run xxx -fuzz FuzzParse -fuzztime 10s ./internal/logs/emf
	go test -run xxx -fuzz FuzzSchedule -fuzztime 10s -fuzzminimizetime 10x ./internal/scaling
	go test -run xxx -fuzz FuzzPlace -fuzztime 10s -fuzzminimizetime 10x ./internal/ecs/placement
	go test -run xxx -fuzz FuzzReadTrace -fuzztime 10s ./internal/sim
	go test -run xxx -fuzz 'FuzzDecode$$' -fuzztime 10s ./internal/acs
	go test -run xxx -fuzz 'FuzzDecodeSigned$$' -fuzztime 10s ./internal/acs
	go test -run xxx -fuzz FuzzGuard -fuzztime 10s ./internal/sqlitefile
	go test -run xxx -fuzz FuzzLog -fuzztime 10s -fuzzminimizetime 10x ./internal/sqlitefile
	go test -run xxx -fuzz FuzzTree -fuzztime 10s -fuzzminimizetime 10x ./internal/sqlitefile
	go test -run xxx -fuzz FuzzParse -fuzztime 10s ./internal/node/runtime/shim/program
	go test -run xxx -fuzz FuzzAppendString -fuzztime 10s ./internal/node/runtime/shim/program
	go test -run xxx -fuzz FuzzReplay -fuzztime 10s ./internal/state
	go test -run xxx -fuzz FuzzParseRecord -fuzztime 10s ./internal/logs/streams
	go test -run xxx -fuzz FuzzParseRecord -fuzztime 10s ./internal/cloudwatch/metrics
	go test -run xxx -fuzz FuzzBlock -fuzztime 10s ./internal/cloudwatch/metrics
	go test -run xxx -fuzz FuzzSegment -fuzztime 10s ./internal/wal
	go test -run xxx -fuzz FuzzParsePayload -fuzztime 10s ./internal/sqs/queues
	go test -run xxx -fuzz FuzzDecodeJSON -fuzztime 10s ./internal/wire/codec
	go test -run xxx -fuzz FuzzPlainStrings -fuzztime 10s ./internal/wire/codec
	go test -run xxx -fuzz FuzzDecodeCBOR -fuzztime 10s ./internal/wire/codec
	go test -run xxx -fuzz FuzzForm -fuzztime 10s ./internal/wire/codec
	go test -run xxx -fuzz FuzzChunked -fuzztime 10s ./internal/wire/sign
	go test -run xxx -fuzz FuzzXML -fuzztime 10s ./internal/wire/codec
	go test -run xxx -fuzz FuzzPath -fuzztime 10s ./internal/wire/rest
	go test -run xxx -fuzz FuzzCopySource -fuzztime 10s ./internal/s3
	go test -run xxx -fuzz FuzzAuthorization -fuzztime 10s ./internal/wire/sign

bench: build ## run the benchmarks: over HTTP beside moto's server where it is installed, then package by package
	go run ./bench/api
	go run ./bench/sqs
	go test -run xxx -bench . -benchmem ./internal/state ./internal/ecs/... ./internal/autoscaling/... ./internal/appautoscaling/... ./internal/cloudwatch/... ./internal/logs/... ./internal/s3/... ./internal/sqs/... ./internal/sim ./internal/wire/...
	go run ./bench/reaction
	go run ./bench/reaction -queue
	go run ./bench/capacity -reaction fast
	go test -run xxx -bench Start ./internal/node/runtime/process

docs: build ## write docs/coverage.md anew
	./bin/pintle coverage > docs/coverage.md

.PHONY: help build demo test soak lint fuzz bench docs
