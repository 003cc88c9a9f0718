// Command pintle is all of Pintle: the control plane, the node, and the verbs for people. Each verb has its own file; server.go and
// client.go have what they share.
package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	goruntime "runtime"
	"strings"
	"syscall"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pintle/pintle/internal/node/runtime/shim/program"
)

// version is set when building a release.
var version = "0.1.0-dev"

// newRoot returns the command line: every verb with its flags.
func newRoot() *cobra.Command {
	showVersion := false
	root := &cobra.Command{
		Use: "pintle <command>",
		Short: "Pintle is an open, self-hosted Amazon ECS for GPU workloads. Start with:\n" +
			"  pintle up --instances p3.16xlarge=2 --runtime process",
		SilenceErrors: true, // main reports them
		SilenceUsage:  true,

		DisableFlagsInUseLine: true,
	}
	define(root)
	root.Flags().BoolVar(&showVersion, "version", false, "Print the version.")
	root.RunE = func(cmd *cobra.Command, _ []string) error {
		if showVersion {
			return printVersion(cmd.Context())
		}
		return root.Help()
	}
	root.SetHelpFunc(help)
	cobra.EnableCommandSorting = false
	root.AddCommand(
		new(upCmd).verb(),
		new(serveCmd).verb(),
		new(agentCmd).verb(),
		new(machineCmd).verb(),
		new(runCmd).verb(),
		new(psCmd).verb(),
		new(whyCmd).verb(),
		new(topCmd).verb(),
		new(logsCmd).verb(),
		new(execCmd).verb(),
		new(stopCmd).verb(),
		new(mountCmd).verb(),
		new(simCmd).verb(),
		newStack(),
		new(compareCmd).verb(),
		new(cfnInitCmd).verb(),
		new(cfnSignalCmd).verb(),
		newGpus(),
		new(costCmd).verb(),
		new(metricsCmd).verb(),
		new(workerCmd).verb(),
		new(balancerCmd).verb(),
		new(balancersCmd).verb(),
		newToken(),
		new(envCmd).verb(),
		new(proxyCmd).verb(),
		new(checkCmd).verb(),
		new(doctorCmd).verb(),
		new(healthCmd).verb(),
		new(backupCmd).verb(),
		new(restoreCmd).verb(),
		newVerb("coverage", "Print which operations of each AWS service are implemented.", noArguments, coverage),
		newVerb("version", "Print the version.", noArguments, printVersion),
	)
	root.AddCommand(newMan(root))
	root.SetHelpCommand(newHelp(root))
	root.InitDefaultCompletionCmd("completion")
	completion, _, err := root.Find([]string{"completion"})
	if err == nil {
		completion.RunE = refuseUnknown
	}
	return root
}

func printVersion(context.Context) error {
	fmt.Println("pintle", version)
	return nil
}

// newVerb makes a verb from the function that runs it. Errors of that function aren't mistakes on the command line.
func newVerb(use, short string, args cobra.PositionalArgs, run func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:     use,
		Short:   short,
		Args:    args,
		PreRunE: func(cmd *cobra.Command, _ []string) error { return flags{cmd.Flags()}.readEnvironment() },
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := run(cmd.Context()); err != nil {
				return runError{err}
			}
			return nil
		},
		DisableFlagsInUseLine: true,
	}
	define(cmd)
	return cmd
}

// checked has a verb's flags checked together before it runs. What is wrong with them is a mistake on the command line.
func checked(cmd *cobra.Command, check func() error) *cobra.Command {
	readEnvironment := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
		if err := readEnvironment(cmd, args); err != nil {
			return err
		}
		return check()
	}
	return cmd
}

// define sets what all commands have in common.
func define(cmd *cobra.Command) {
	cmd.Flags().SortFlags = false
	cmd.Flags().BoolP("help", "h", false, "Show this.")
}

// runError is an error that came up after the command line was understood.
type runError struct{ error }

func (e runError) Unwrap() error { return e.error }

// noArguments is for verbs that take only flags.
func noArguments(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %s", args[0])
	}
	return nil
}

// argument is for verbs that take one argument, stored in a variable.
func argument(to *string, name string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("expected %s", name)
		}
		*to = args[0]
		return noArguments(cmd, args[1:])
	}
}

// arguments is for verbs that take at least one argument.
func arguments(to *[]string, name string) cobra.PositionalArgs {
	return func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return fmt.Errorf("expected %s", name)
		}
		*to = args
		return nil
	}
}

// exitCode is an error that only sets the exit code, because everything has been said.
type exitCode int

func (e exitCode) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// ignore drops the errors of an orderly end.
func ignore(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// The main goroutine keeps the main thread, whose state /proc/PID shows. So no goroutine that enters a container's namespaces runs on it.
func init() { goruntime.LockOSThread() }

func main() {
	if len(os.Args) > 1 && os.Args[1] == "shim" { // by agents that find no pintle-shim
		os.Exit(program.Main(os.Args[2:]))
	}
	if len(os.Args) > 1 && os.Args[1] == proxyVerb {
		os.Exit(runProxy())
	}
	if len(os.Args) > 1 && os.Args[1] == sessionVerb {
		os.Exit(runSession(os.Args[2:]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	root.SetArgs(calledAs(os.Args))
	cmd, err := root.ExecuteContextC(ctx)
	os.Exit(explain(cmd, err))
}

// explain prints an error for a person and returns the exit code, which is 2 for a command line that can't be understood.
func explain(cmd *cobra.Command, err error) int {
	var failed runError
	var code exitCode
	_, isLost := errors.AsType[lostTask](err)
	switch {
	case err == nil:
		return 0
	case !errors.As(err, &failed):
		fmt.Fprintf(os.Stderr, "pintle: error: %v%s\nRun \"%s --help\" for more information.\n", err, similarFlags(cmd, err), cmd.CommandPath())
		return 2
	case errors.As(err, &code):
		return int(code)
	case errors.Is(err, syscall.ECONNREFUSED) && !isLost:
		fmt.Fprintf(
			os.Stderr,
			"pintle: no control plane answers%s. Start one with: pintle up. "+
				"If it is elsewhere, say where with --endpoint or AWS_ENDPOINT_URL.\n",
			dialled(err),
		)
	case errors.Is(err, context.Canceled): // ctrl-C
		return 130
	default:
		fmt.Fprintln(plainWriter{os.Stderr}, "pintle:", messageOf(err))
	}
	return 1
}

// similarFlags names the flags that begin as one that there isn't.
func similarFlags(cmd *cobra.Command, err error) string {
	unknown, is := errors.AsType[*pflag.NotExistError](err)
	if !is || unknown.GetSpecifiedShortnames() != "" {
		return ""
	}
	given, similar := unknown.GetSpecifiedName(), ""
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if !f.Hidden && (strings.HasPrefix(f.Name, given) || strings.HasPrefix(given, f.Name)) {
			similar += " --" + f.Name
		}
	})
	if similar != "" {
		return ". There is" + similar
	}
	return ""
}

// dialled says at which address a connection failed.
func dialled(err error) string {
	if dial, ok := errors.AsType[*net.OpError](err); ok && dial.Addr != nil {
		return " at " + dial.Addr.String()
	}
	return ""
}

// messageOf is an error's text for people, without the SDK's call, status and request id.
func messageOf(err error) string {
	call, isCall := errors.AsType[*smithy.OperationError](err)
	if !isCall {
		return err.Error()
	}
	return strings.Replace(err.Error(), call.Error(), causeOf(call), 1)
}

// causeOf says why a call failed. Of an AWS API's error it has the message alone, of others what went wrong and with whom.
func causeOf(call *smithy.OperationError) string {
	if api, isAPI := errors.AsType[smithy.APIError](call); isAPI {
		return api.ErrorMessage() + advice(api.ErrorCode())
	}
	unsent, isUnsent := errors.AsType[*url.Error](call)
	answer, isAnswer := errors.AsType[*smithyhttp.ResponseError](call)
	switch {
	case isUnsent:
		return notReached(unsent).Error()
	case isAnswer && wantsTLS(answer.Response.Response):
		return askByTLS(answer.Response.Response)
	case isAnswer && (answer.HTTPStatusCode() == http.StatusBadRequest || isPage(answer.Response.Response)):
		return noControlPlane
	}
	return call.Error()
}

// notReached says why a request could not be made, and what to do about it.
func notReached(err error) error {
	var unknown x509.UnknownAuthorityError
	unsent, isUnsent := errors.AsType[*url.Error](err)
	switch {
	case !isUnsent:
		return err
	case errors.As(err, &unknown):
		return fmt.Errorf("%s has a certificate of an unknown authority: set AWS_CA_BUNDLE to the authority's own, which is DATA/tls/ca.pem for "+
			"a control plane with --tls auto and --data DATA", unsent.URL)
	}
	err = fmt.Errorf("cannot call %s: %w", unsent.URL, unsent.Err)
	if errors.Is(err, http.ErrSchemeMismatch) {
		err = fmt.Errorf("%w: use http:// with --endpoint", err)
	}
	return err
}

const noControlPlane = "what answers there is no control plane"

// isPage reports whether an answer is a page for people, which a control plane's API never is.
func isPage(r *http.Response) bool {
	return r != nil && strings.HasPrefix(r.Header.Get("Content-Type"), "text/html")
}

// wantsTLS reports whether an answer is that of a Go server with TLS to a request without, which has no header at all.
func wantsTLS(r *http.Response) bool {
	return r != nil && r.StatusCode == http.StatusBadRequest && !r.ProtoAtLeast(1, 1) && len(r.Header) == 0 && r.Request != nil
}

func askByTLS(r *http.Response) string {
	return "the control plane speaks TLS: use --endpoint https://" + r.Request.URL.Host
}

// advice says what to do where a control plane doesn't know a cluster, a queue, a key, or its secret: the codes of all protocols. One without a key
// refuses keys too, with --iam enforce: those of the form that IAM issues, such as somebody's of AWS.
func advice(code string) string {
	switch code {
	case "ClusterNotFoundException":
		return " aws ecs list-clusters lists those that there are."
	case "QueueDoesNotExist", "AWS.SimpleQueueService.NonExistentQueue":
		return " aws sqs list-queues lists those that there are."
	case "UnrecognizedClientException", "InvalidClientTokenId", "InvalidAccessKeyId", "AuthFailure",
		"InvalidSignatureException", "SignatureDoesNotMatch":
		return " Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY to the key that the control plane was started with, " +
			"or unset them if it was started without one."
	}
	return ""
}
