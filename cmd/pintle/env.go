package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/shellword"
)

type envCmd struct {
	Endpoint string
	Region   string
}

func (c *envCmd) define(f flags) {
	f.StringVar(&c.Endpoint, "endpoint", "http://127.0.0.1:4566", "The control plane's URL.")
	f.StringVar(&c.Region, "region", "us-east-1", "Its region.")
}

func (c *envCmd) verb() *cobra.Command {
	cmd := newVerb(
		"env [flags]", "Print the environment that points the AWS CLI and SDKs here: eval \"$(pintle env)\".", noArguments, c.Run,
	)
	cmd.Long = envHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

const envHelp = `The shell function aws passes --endpoint-url to the AWS CLI, which versions before 2.13 need for all services,
and version 1 for SQS. Programs that start aws without a shell, such as timeout, watch or xargs, must pass it themselves.`

// Run prints shell commands. They keep credentials that are already set.
func (c *envCmd) Run(context.Context) error {
	fmt.Printf("export AWS_ENDPOINT_URL=%s\n", quote(c.Endpoint))
	fmt.Printf("export AWS_REGION=%s AWS_DEFAULT_REGION=%s\n", quote(c.Region), quote(c.Region))
	key := cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), "pintle")
	secret := cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), "pintle")
	fmt.Printf("export AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n", quote(key), quote(secret))
	if path := authorityHere(c.Endpoint); path != "" {
		fmt.Printf("export AWS_CA_BUNDLE=%s\n", quote(path))
	}
	fmt.Println("export AWS_PAGER=")
	fmt.Println(awsFunction)
	fmt.Println(exportFunction)
	return nil
}

// plainWord is what a shell takes as it is.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// quote quotes a word for the shell, if it has to be.
func quote(word string) string {
	if plainWord.MatchString(word) {
		return word
	}
	return shellword.Quote(word)
}

// awsFunction passes the endpoint on the command line, because the AWS CLI before 2.13 doesn't know AWS_ENDPOINT_URL, and version 1 ignores
// it for SQS.
const awsFunction = `aws() { if [ -n "${AWS_ENDPOINT_URL:-}" ]; ` +
	`then command aws --endpoint-url "$AWS_ENDPOINT_URL" "$@"; else command aws "$@"; fi; }`

// exportFunction exports the function to scripts, if the shell can.
const exportFunction = `if [ -n "${BASH_VERSION:-}" ]; then export -f aws; fi`
