package main

import (
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
	f.endpoint(&c.Endpoint)
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

const envHelp = `If the AWS CLI on the PATH doesn't take its endpoint from AWS_ENDPOINT_URL, as versions before 2.13 for all services and
version 1 for SQS, a program aws that passes it on is put before it: it is written to ~/.cache/pintle/bin (in $XDG_CACHE_HOME, if set).

Where there is a docker, CDK_DOCKER is a program for the CDK, beside that directory, for which the account's registry is here.`

// Run prints shell commands. They keep credentials that are already set.
func (c *envCmd) Run(ctx context.Context) error {
	fmt.Printf("export AWS_ENDPOINT_URL=%s\n", quote(c.Endpoint))
	fmt.Printf("export AWS_REGION=%s AWS_DEFAULT_REGION=%s\n", quote(c.Region), quote(c.Region))
	key := keyHere()
	fmt.Printf("export AWS_ACCESS_KEY_ID=%s AWS_SECRET_ACCESS_KEY=%s\n", quote(key.AccessKeyID), quote(key.SecretAccessKey))
	if path := authorityHere(c.Endpoint); path != "" {
		fmt.Printf("export AWS_CA_BUNDLE=%s\n", quote(path))
	}
	fmt.Println("export AWS_PAGER=")
	if docker, err := dockerForCDK(); err != nil {
		fmt.Fprintln(os.Stderr, "pintle: the CDK can't push images, as no program could be written that leads docker here:", err)
	} else if docker != "" {
		fmt.Printf("export CDK_DOCKER=%s\n", quote(docker))
	}
	dir, err := awsBefore(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "pintle: this AWS CLI needs --endpoint-url for some services, as no program could pass it on:", err)
		return nil
	}
	if dir != "" {
		fmt.Printf("export PATH=%s:\"$PATH\"\n", quote(dir))
	}
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
