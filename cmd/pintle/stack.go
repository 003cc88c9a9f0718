package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/spf13/cobra"
)

// The verbs for stacks; stackup.go has those that take a template.

func newStack() *cobra.Command {
	c := new(stackListCmd)
	cmd := newVerb("stack [flags]", "Deploy what a CloudFormation template describes; list, show, compare, roll back and delete such stacks.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	cmd.AddCommand(
		new(stackUpCmd).verb(),
		new(stackDiffCmd).verb(),
		new(stackListCmd).verb(),
		new(stackShowCmd).verb(),
		new(stackRollbackCmd).verb(),
		new(stackRemoveCmd).verb(),
		new(stackTypesCmd).verb(),
	)
	return cmd
}

func (f endpointFlags) cloudFormation(ctx context.Context) (*cloudformation.Client, error) {
	c, err := awsConfig(f.Endpoint)
	if err != nil {
		return nil, err
	}
	return cloudformation.NewFromConfig(c), nil
}

type stackListCmd struct{ endpointFlags }

func (c *stackListCmd) verb() *cobra.Command {
	cmd := newVerb("ls [flags]", "List stacks. The default.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run lists stacks.
func (c *stackListCmd) Run(ctx context.Context) error {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	w := newTable("STACK", "STATUS", "AGE", "DESCRIPTION")
	pages := cloudformation.NewDescribeStacksPaginator(client, &cloudformation.DescribeStacksInput{})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, s := range p.Stacks {
			w.row(*s.StackName, s.StackStatus, age(s.CreationTime), cmp.Or(aws.ToString(s.Description), "-"))
		}
	}
	c.noteReadOnly(ctx)
	return w.Flush()
}

type stackShowCmd struct {
	endpointFlags
	Name string
}

func (c *stackShowCmd) verb() *cobra.Command {
	cmd := newVerb("show [flags] STACK", "Show a stack: its parameters, resources and outputs.", argument(&c.Name, "a stack"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run shows a stack.
func (c *stackShowCmd) Run(ctx context.Context) error {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	s, err := stackNamed(ctx, client, c.Name)
	if err != nil {
		return err
	}
	w := newTable("STACK", "STATUS", "AGE", "REASON")
	w.row(*s.StackName, s.StackStatus, age(s.CreationTime), cmp.Or(aws.ToString(s.StackStatusReason), "-"))
	if len(s.Parameters) > 0 {
		w.row()
		w.row("PARAMETER", "VALUE")
	}
	for _, p := range s.Parameters {
		w.row(*p.ParameterKey, cmp.Or(aws.ToString(p.ResolvedValue), aws.ToString(p.ParameterValue)))
	}
	w.row()
	w.row("RESOURCE", "STATUS", "TYPE", "ID", "REASON")
	pages := cloudformation.NewListStackResourcesPaginator(client, &cloudformation.ListStackResourcesInput{StackName: s.StackId})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, r := range p.StackResourceSummaries {
			id, reason := cmp.Or(aws.ToString(r.PhysicalResourceId), "-"), cmp.Or(aws.ToString(r.ResourceStatusReason), "-")
			w.row(*r.LogicalResourceId, r.ResourceStatus, *r.ResourceType, id, reason)
		}
	}
	if len(s.Outputs) > 0 {
		w.row()
		w.row(outputTitles...)
	}
	writeOutputs(w, s)
	if err := w.Flush(); err != nil {
		return err
	}
	if way := wayOut(s); way != "" {
		fmt.Fprintln(os.Stderr, "pintle: "+way)
	}
	return nil
}

var outputTitles = []any{"OUTPUT", "VALUE", "DESCRIPTION"}

// writeOutputs adds a stack's outputs to a table.
func writeOutputs(w table, s *types.Stack) {
	for _, o := range s.Outputs {
		w.row(*o.OutputKey, *o.OutputValue, cmp.Or(aws.ToString(o.Description), "-"))
	}
}

// stackNamed returns a stack by its name or ID.
func stackNamed(ctx context.Context, client *cloudformation.Client, name string) (*types.Stack, error) {
	out, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if isNoStack(err) {
		return nil, fmt.Errorf("there is no stack %s: pintle stack ls lists them", name)
	}
	if err != nil {
		return nil, err
	}
	return &out.Stacks[0], nil
}

// isNoStack reports whether an error says that there is no such stack. CloudFormation has no code of its own for that.
func isNoStack(err error) bool {
	return err != nil && strings.Contains(err.Error(), "Stack with id ") && strings.Contains(err.Error(), " does not exist")
}

type stackRollbackCmd struct {
	endpointFlags
	Name string
}

func (c *stackRollbackCmd) verb() *cobra.Command {
	cmd := newVerb("rollback [flags] STACK", "Take back what a failure has left of a stack, and show each step until it's done.",
		argument(&c.Name, "a stack"), c.Run)
	cmd.Long = "A stack that is CREATE_FAILED or UPDATE_FAILED becomes what it was before: nothing, after which it can only be deleted, or what its " +
		"last good update has made of it."
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run rolls a stack back.
func (c *stackRollbackCmd) Run(ctx context.Context) error {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	s, err := stackNamed(ctx, client, c.Name)
	if err != nil {
		return err
	}
	f, err := newFollower(ctx, client, *s.StackId)
	if err != nil {
		return err
	}
	if _, err := client.RollbackStack(ctx, &cloudformation.RollbackStackInput{StackName: s.StackId}); err != nil {
		return err
	}
	s, err = f.follow(ctx)
	if s != nil && (s.StackStatus == types.StackStatusRollbackComplete || s.StackStatus == types.StackStatusUpdateRollbackComplete) {
		return nil
	}
	return err
}

type stackRemoveCmd struct {
	endpointFlags
	Name string
}

func (c *stackRemoveCmd) verb() *cobra.Command {
	cmd := newVerb("rm [flags] STACK", "Delete a stack with its resources, and wait until they are gone.", argument(&c.Name, "a stack"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run deletes a stack.
func (c *stackRemoveCmd) Run(ctx context.Context) error {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	s, err := stackNamed(ctx, client, c.Name)
	if err != nil {
		return err
	}
	f, err := newFollower(ctx, client, *s.StackId)
	if err != nil {
		return err
	}
	if _, err := client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: s.StackId}); err != nil {
		return err
	}
	_, err = f.follow(ctx)
	return err
}

type stackTypesCmd struct {
	endpointFlags
	Prefix string
}

func (c *stackTypesCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.StringVar(&c.Prefix, "prefix", "AWS::", "Only types whose names begin so, such as AWS::ECS.")
}

func (c *stackTypesCmd) verb() *cobra.Command {
	cmd := newVerb("types [flags]", "List the types of resources that templates may have.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run lists types of resources.
func (c *stackTypesCmd) Run(ctx context.Context) error {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	pages := cloudformation.NewListTypesPaginator(client, &cloudformation.ListTypesInput{
		Visibility: types.VisibilityPublic,
		Type:       types.RegistryTypeResource,
		Filters:    &types.TypeFilters{TypeNamePrefix: &c.Prefix},
	})
	for pages.HasMorePages() {
		p, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, t := range p.TypeSummaries {
			fmt.Println(*t.TypeName)
		}
	}
	return nil
}
