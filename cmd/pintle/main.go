// Command pintle is the whole of Pintle: the control plane, the node, and the verbs by which people
// use them. Each verb has a file of its own; what they share is in server.go and client.go.
package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	goruntime "runtime"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/pintle/pintle/internal/node/runtime/shim"
)

// version is set when a release is built.
var version = "0.1.0-dev"

// cli is every verb and its flags.
type cli struct {
	Up       upCmd       `cmd:"" help:"Run a control plane and its nodes on this machine."`
	Serve    serveCmd    `cmd:"" help:"Run a control plane that nodes on other machines connect to."`
	Agent    agentCmd    `cmd:"" help:"Make this machine a node of a control plane."`
	Machine  machineCmd  `cmd:"" hidden:"" help:"What a control plane with --fleet static has a machine of its pool do."`
	Run      runCmd      `cmd:"" help:"Run a container, show its logs, and exit with its code."`
	Ps       psCmd       `cmd:"" help:"List tasks."`
	Logs     logsCmd     `cmd:"" help:"Show a task's logs."`
	Stop     stopCmd     `cmd:"" help:"Stop tasks."`
	Sim      simCmd      `cmd:"" help:"Replay a load against scaling policies in simulated time, and compare them."`
	Gpus     gpusCmd     `cmd:"" help:"List GPUs: their nodes, who is pinned to each, its load and its health; make up faults."`
	Metrics  metricsCmd  `cmd:"" help:"Put the metrics of a task's GPUs into CloudWatch: a sidecar, on Pintle and on AWS."`
	Worker   workerCmd   `cmd:"" help:"Have a command work off an SQS queue, and lose no message: a container's command, on Pintle and on AWS."`
	Env      envCmd      `cmd:"" help:"Print the environment that points the AWS CLI and SDKs here: eval \"$(pintle env)\"."`
	Coverage coverageCmd `cmd:"" help:"Print which operations of each AWS service are implemented."`
	Version  versionCmd  `cmd:"" help:"Print the version."`
}

type versionCmd struct{}

func (versionCmd) Run() error {
	fmt.Println("pintle", version)
	return nil
}

// exitCode is an error that only sets the exit code: what there was to say has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ignore drops the errors of an orderly end.
func ignore(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// The main goroutine keeps the main thread, so that none that enters a container's namespaces has it:
// /proc/PID shows the main thread's.
func init() { goruntime.LockOSThread() }

func main() {
	if len(os.Args) > 1 && os.Args[1] == "shim" { // started by agents, not by people
		os.Exit(shim.Main(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	parsed := kong.Parse(&cli{}, kong.Name("pintle"), kong.ShortUsageOnError(),
		kong.Description("Pintle is an open, self-hosted Amazon ECS for GPU workloads. Start with: pintle up --instances p3.16xlarge=2 --runtime process"),
		kong.BindTo(ctx, (*context.Context)(nil)))
	err := parsed.Run()
	var code exitCode
	switch {
	case err == nil:
	case errors.As(err, &code):
		os.Exit(int(code))
	case errors.Is(err, syscall.ECONNREFUSED):
		fmt.Fprintln(os.Stderr, "pintle: no control plane answers. Start one with: pintle up. If it is elsewhere, say where with --endpoint or AWS_ENDPOINT_URL.")
		os.Exit(1)
	default:
		fmt.Fprintln(os.Stderr, "pintle:", err)
		os.Exit(1)
	}
}
