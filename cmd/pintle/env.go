package main

import (
	"cmp"
	"fmt"
	"os"
)

type envCmd struct {
	Endpoint string `default:"http://127.0.0.1:4566" help:"The control plane's URL."`
	Region   string `default:"us-east-1" help:"Its region."`
}

// Help tells whom the function aws does not reach.
func (envCmd) Help() string {
	return `
The function aws gives the AWS CLI its --endpoint-url, which the CLI before 2.13 needs for all services, and version 1
for SQS. What starts aws without a shell, such as timeout, watch or xargs, has to give it itself.`
}

// Run prints shell commands. Credentials that are set already stay.
func (c *envCmd) Run() error {
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
