// Command stacks measures CloudFormation over HTTP: a stack of 200 resources is created, updated by one property and deleted, and a change set
// of a template with 500 resources is planned. The client is the AWS SDK in this process, on the same machine.
package main

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"

	"github.com/pintle/pintle/bench/load"
)

func main() {
	binary := flag.String("pintle", "bin/pintle", "the binary to measure")
	resources := flag.Int("resources", 200, "of the stack")
	planned := flag.Int("planned", 500, "resources of the template that is planned")
	flag.Parse()
	if err := run(context.Background(), *binary, *resources, *planned); err != nil {
		fmt.Fprintln(os.Stderr, "stacks:", err)
		os.Exit(1)
	}
}

// bench is a server and its client.
type bench struct {
	*cloudformation.Client
	server *load.Process
}

func run(ctx context.Context, binary string, resources, planned int) error {
	dir, err := os.MkdirTemp("", "stacks")
	if err != nil {
		return err
	}
	address := load.FreeAddress()
	b := bench{Client: cloudformation.New(cloudformation.Options{
		Region:       "us-east-1",
		BaseEndpoint: aws.String("http://" + address),
		Credentials:  credentials.NewStaticCredentialsProvider("any", "any", ""),
	})}
	b.server, err = load.Start(exec.Command(binary, "serve", "--listen", address, "--data", dir), dir, func() error {
		_, err := b.ListStacks(ctx, nil)
		return err
	})
	if err != nil {
		return err
	}
	defer b.server.Stop()
	if err := b.stack(ctx, resources); err != nil {
		return err
	}
	return b.plan(ctx, planned)
}

// stack creates, updates and deletes a stack.
func (b bench) stack(ctx context.Context, resources int) error {
	name, body := aws.String("bench"), aws.String(templateOf(resources))
	days := func(n string) []types.Parameter {
		return []types.Parameter{{ParameterKey: aws.String("Days"), ParameterValue: &n}}
	}
	for _, step := range []struct {
		what string
		call func() error
		done types.StackStatus
	}{
		{"created", func() error {
			_, err := b.CreateStack(ctx, &cloudformation.CreateStackInput{StackName: name, TemplateBody: body, Parameters: days("7")})
			return err
		}, types.StackStatusCreateComplete},
		{"updated by one property", func() error {
			_, err := b.UpdateStack(ctx, &cloudformation.UpdateStackInput{StackName: name, TemplateBody: body, Parameters: days("14")})
			return err
		}, types.StackStatusUpdateComplete},
		{"deleted", func() error {
			_, err := b.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: name})
			return err
		}, types.StackStatusDeleteComplete},
	} {
		if err := b.measure(ctx, fmt.Sprintf("%d resources %s", resources, step.what), *name, step.call, step.done); err != nil {
			return err
		}
	}
	return nil
}

// measure makes a call and waits until the stack is done.
func (b bench) measure(ctx context.Context, what, stack string, call func() error, done types.StackStatus) error {
	out, err := b.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &stack})
	id := stack
	if err == nil {
		id = *out.Stacks[0].StackId // by which a deleted stack is still found
	}
	began, used := time.Now(), b.server.CPU()
	if err := call(); err != nil {
		return err
	}
	for calls := 1; ; calls++ {
		out, err := b.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &id})
		if err != nil {
			return err
		}
		switch s := out.Stacks[0].StackStatus; {
		case s == done:
			took := time.Since(began)
			fmt.Printf("%s: %s, %d calls of the client, %s of CPU, %.0f MB resident\n",
				what, took.Round(time.Millisecond), calls, b.server.CPU()-used, b.server.RSS())
			return nil
		case !strings.HasSuffix(string(s), "IN_PROGRESS"):
			return fmt.Errorf("%s: the stack is %s: %s", what, s, aws.ToString(out.Stacks[0].StackStatusReason))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// plan makes change sets of a new stack again and again.
func (b bench) plan(ctx context.Context, resources int) error {
	body := aws.String(templateOf(resources))
	var took []time.Duration
	for i := range 11 {
		in := &cloudformation.CreateChangeSetInput{
			StackName:     aws.String("planned"),
			ChangeSetName: aws.String(fmt.Sprint("plan", i)),
			ChangeSetType: types.ChangeSetTypeCreate,
			TemplateBody:  body,
		}
		began := time.Now()
		if _, err := b.CreateChangeSet(ctx, in); err != nil {
			return err
		}
		for {
			out, err := b.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{StackName: in.StackName, ChangeSetName: in.ChangeSetName})
			if err != nil {
				return err
			}
			if out.Status == types.ChangeSetStatusCreateComplete {
				break
			}
			if out.Status == types.ChangeSetStatusFailed {
				return fmt.Errorf("the change set failed: %s", aws.ToString(out.StatusReason))
			}
		}
		took = append(took, time.Since(began))
	}
	slices.SortFunc(took, cmp.Compare[time.Duration])
	fmt.Printf("%d resources planned, over HTTP, a template of %d KB: median %s, most %s\n",
		resources, len(*body)/1000, took[len(took)/2].Round(time.Millisecond), took[len(took)-1].Round(time.Millisecond))
	return nil
}

// templateOf makes a template with queues, parameters that have the queues' names, log groups and security groups.
func templateOf(resources int) string {
	type object = map[string]any
	all := object{}
	for i := range resources {
		r := object{}
		switch i % 4 {
		case 0:
			r = object{"Type": "AWS::SQS::Queue", "Properties": object{"VisibilityTimeout": 60}}
		case 1:
			queue := object{"Fn::GetAtt": []string{fmt.Sprintf("R%03d", i-1), "QueueName"}}
			r = object{"Type": "AWS::SSM::Parameter", "Properties": object{"Type": "String", "Value": queue}}
		case 2:
			days := any(7)
			if i == 2 {
				days = object{"Ref": "Days"}
			}
			r = object{"Type": "AWS::Logs::LogGroup", "Properties": object{"RetentionInDays": days}}
		case 3:
			r = object{"Type": "AWS::EC2::SecurityGroup", "Properties": object{"GroupDescription": object{"Fn::Sub": "of ${AWS::StackName}"}}}
		}
		all[fmt.Sprintf("R%03d", i)] = r
	}
	body, err := json.Marshal(object{
		"Parameters": object{"Days": object{"Type": "Number", "Default": 7}},
		"Resources":  all,
	})
	if err != nil {
		panic(err) // it's made of maps and text
	}
	return string(body)
}
