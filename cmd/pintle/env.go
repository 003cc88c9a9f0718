package main

import (
	"cmp"
	"context"
	"fmt"
	"os"

	"github.com/spf13/cobra"
)

type envCmd struct {
	Endpoint string
	Region   string
}

// define defines the flags.
func (c *envCmd) define(f flags) {
	f.StringVar(&c.Endpoint, "endpoint", "http://127.0.0.1:4566", "The control plane's URL.")
	f.StringVar(&c.Region, "region", "us-east-1", "Its region.")
}

// verb is the command line of the verb.
func (c *envCmd) verb() *cobra.Command {
	cmd := newVerb("env [flags]", "Print the environment that points the AWS CLI and SDKs here: eval \"$(pintle env)\".", noArguments, c.Run)
	cmd.Long = envHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

// envHelp tells whom the function aws does not reach.
const envHelp = `The function aws gives the AWS CLI its --endpoint-url, which the CLI before 2.13 needs for all services, and version 1
for SQS. What starts aws without a shell, such as timeout, watch or xargs, has to give it itself.`

// Run prints shell commands. Credentials that are set already stay.
func (c *envCmd) Run(context.Context) error {
	fmt.Printf("export AWS_ENDPOINT_URL=%s\n", c.Endpoint)
	fmt.Printf("export AWS_REGION=%s AWS_DEFAULT_REGION=%s\n", c.Region, c.Region)
	fmt.Printf("export AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n", cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "pintle"), cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "pintle"))
	fmt.Println("export AWS_PAGER=")
	fmt.Println(awsFunction)
	fmt.Println(exportFunction)
	return nil
}

// awsFunction names the endpoint outright: the AWS CLI before 2.13 does not know AWS_ENDPOINT_URL, and version 1 forgets it for SQS.
const awsFunction = `aws() { if [ -n "${AWS_ENDPOINT_URL:-}" ]; then command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; else command aws "$@"; fi; }`

// exportFunction gives it to scripts, too, where the shell can.
const exportFunction = `if [ -n "${BASH_VERSION:-}" ]; then export -f aws; fi`
