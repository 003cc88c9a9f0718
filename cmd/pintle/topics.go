package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// topic is a text that pintle help shows by its name.
type topic struct{ name, short, text string }

// topicOf returns what words name, if they are the name of a topic.
func topicOf(words []string) (topic, bool) {
	i := slices.IndexFunc(topics, func(t topic) bool { return len(words) == 1 && t.name == words[0] })
	if i < 0 {
		return topic{}, false
	}
	return topics[i], true
}

func writeTopics(w io.Writer) {
	fmt.Fprint(w, "\nTopics:\n")
	for _, t := range topics {
		fmt.Fprintf(w, "  %-12s%s\n", t.name, t.short)
	}
}

// write shows a topic.
func (t topic) write(cmd *cobra.Command, columns int) {
	fmt.Fprintf(cmd.OutOrStdout(), "%s\n", wrap(strings.TrimSpace(t.text), columns))
}

// topics are short: what is beyond them is in the documentation.
var topics = []topic{
	{"concepts", "What control plane, node, task, service and GPU are to each other.", conceptsText},
	{"environment", "Environment variables, and what reads them.", environmentText},
	{"files", "What is where on the disk, and what to keep.", filesText},
	{"gpu", "How tasks get GPUs, real and simulated.", gpuText},
	{"scaling", "How services and their machines follow the load.", scalingText},
	{"security", "Who may do what, and what to do before others reach it.", securityText},
}

const conceptsText = `
The control plane (pintle serve) speaks the AWS APIs and keeps everything in its data directory. A node (pintle agent) is a machine that runs containers: ECS calls it a container instance. pintle up is both in one process.

A task definition says what to run: containers, their images, CPUs, memory and GPUs. A task is one run of it, on one node. A service keeps a number of tasks running and replaces them when their definition changes. A cluster is a set of nodes with their tasks; the one called default is there without being made.

A task asks for whole GPUs. Those that it gets are pinned to it until it ends, and no other task gets them meanwhile. A task for which there is no place waits if a service wants it or a capacity provider may bring machines, and is refused otherwise. pintle why TASK says what is missing.

Nodes outlive the control plane: if it is away, containers go on, and what happened meanwhile is told when it is back.

More: docs/architecture.md
`

const environmentText = `
A flag that was given counts before its variable; pintle <command> --help shows which flags have one.

Callers (pintle ps, run, logs, stack, ...) and nodes:

  AWS_ENDPOINT_URL          the control plane's URL; pintle env sets it
  AWS_ACCESS_KEY_ID         the key that calls are signed with, with
  AWS_SECRET_ACCESS_KEY     its secret and
  AWS_SESSION_TOKEN         its token, if it has one
  AWS_REGION                the region; else AWS_DEFAULT_REGION
  AWS_CA_BUNDLE             file of authorities to trust, not the system's
  ECS_CLUSTER               the cluster

The control plane:

  PINTLE_ACCESS_KEY_ID      the owner's key, for callers in the same shell, too,
  PINTLE_SECRET_ACCESS_KEY  and its secret
  PINTLE_SECRETS_KEY        encrypts parameters and secrets on disk
  OTEL_EXPORTER_OTLP_ENDPOINT  an OpenTelemetry collector, for traces, and
  OTEL_EXPORTER_OTLP_HEADERS   what it wants to be told besides

Nodes:

  PINTLE_JOIN_TOKEN         what pintle token has made, to join with
  ECS_ENGINE_TASK_CLEANUP_WAIT_DURATION  how long stopped containers are kept
  ECS_IMAGE_PULL_BEHAVIOR   when images are pulled anew
  ECS_AWSVPC_BLOCK_IMDS     whether tasks with addresses of their own are kept
                            from the node's credentials
  DOCKER_HOST               the Docker Engine

pintle metrics:

  DCGM_EXPORTER_URL         the exporter that it reads

pintle worker:

  QUEUE_URL                 the queue
  RESULT_BUCKET             the bucket for results, and
  RESULT_PREFIX             what their keys begin with

All: HOME, below which data directories are; COLUMNS, how wide help is; NO_COLOR, pintle top without colors.

More: docs/security.md, docs/nodes.md
`

const filesText = `
The control plane's data directory is --data, ~/.pintle unless given; the packages' unit has /var/lib/pintle. Keep it on a local disk, for one control plane at a time. In it:

  state.db         what isn't bytes or measured: tasks, services, stacks, roles
  objects          S3
  queues           SQS's messages
  logs, metrics    CloudWatch
  images           ECR's layers
  functions        Lambda's code
  task.key, secrets.key, tls  keys: whoever reads them can be anybody
  reserve-for-...  room for a full disk

An agent's directory has what it must know to find its containers again after a restart.

pintle backup FILE makes an archive of the control plane's data while it runs, and pintle restore makes a directory of that. pintle check looks for damaged files. Don't copy the directory of a control plane that runs: the copy is not of one moment.

More: docs/operations.md, docs/damage.md
`

const gpuText = `
An agent finds NVIDIA's GPUs by NVML. --runtime docker and oci give them to containers by Docker's device requests and CDI; --gpus required has the agent end with an error if containers can't have them. pintle doctor says what is missing.

A container asks for GPUs as on ECS: "resourceRequirements": [{"type": "GPU", "value": "2"}], or pintle run --gpus 2. It sees those and no others. Of several that are free, those that are best connected are chosen.

pintle gpus lists every GPU with its task, load and health. One that breaks is taken out of placement, and the tasks of services on it are replaced. Load is measured each second and goes to CloudWatch, by which services can be scaled, and to Prometheus at the agent's --metrics.

Without GPUs, pintle up --instances p3.16xlarge=2 --runtime process has nodes with simulated ones, marked as such. pintle gpus fault breaks one.

More: docs/gpu.md, docs/nodes.md
`

const scalingText = `
Services: Application Auto Scaling changes their desired count by target tracking, steps or schedules, on any metric of CloudWatch: GPU load, CPUs, requests, a queue's backlog per task.

Machines: an Auto Scaling group has instances; a capacity provider with managed scaling asks for as many as waiting tasks need. --fleet says where they come from: agents on this machine, a pool of yours reached over SSH, or a program of yours.

--reaction faithful is as slow as AWS (minutes). --reaction fast reacts to data of ten seconds, as it arrives.

pintle sim replays a load against policies in simulated time, so that they can be compared before they are used. pintle why SERVICE says what a service waits for. pintle cost says what the machines cost, and what scaling saved.

More: docs/fleet.md, examples/3-queue-fleet, examples/sim
`

const securityText = `
Without an access key a control plane listens on loopback alone and believes everybody there. To be reached by others it needs one: set PINTLE_ACCESS_KEY_ID and PINTLE_SECRET_ACCESS_KEY before pintle serve. Then each call's signature is checked. This key is the owner's and may do everything: keep it off the nodes and out of containers.

--tls auto serves HTTPS with an authority of its own, --tls-certificate with a certificate of yours.

Nodes join with a token of pintle token and get keys of their own, which can be withdrawn one by one. Tasks have credentials of their own by taskRoleArn. Policies of IAM bind roles and users wherever a key is set, and with --iam enforce without one, too.

Secrets are encrypted on disk; without --secrets-key the key to them is in the data directory. An archive of pintle backup has every secret and key.

--runtime process isolates nothing: what it runs is as trusted as the agent.

More: docs/security.md, docs/limits.md
`
