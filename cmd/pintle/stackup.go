package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/spf13/cobra"
)

// templateFlags say which stack is to be made from which template. What would change is found out with a change set, as
// aws cloudformation deploy does it.
type templateFlags struct {
	endpointFlags
	Template string // a file, or a URL
	Name     string
	Set      map[string]string
	// keepsFailures is whether what fails stays as it is, and so may be gone on from.
	keepsFailures bool
}

func (c *templateFlags) define(f flags) {
	c.endpointFlags.define(f)
	f.StringVar(&c.Name, "name", "", "The stack's name; default the template's file name.")
	pairs(f, &c.Set, "set", "", "NAME=VALUE", "Value of a parameter, NAME=VALUE; repeat for more. Parameters that aren't set stay as they are.", asIs)
}

type stackUpCmd struct{ templateFlags }

func (c *stackUpCmd) verb() *cobra.Command {
	cmd := newVerb("up [flags] TEMPLATE", "Make or change a stack as a template says, and show each step until it's done.",
		argument(&c.Template, "a template"), c.Run)
	cmd.Long = "TEMPLATE is a file in YAML or JSON, or the URL of an object in S3, which may be larger than 51,200 bytes. What fails is rolled " +
		"back, and the exit code is 1. All capabilities that the template needs are acknowledged."
	f := flags{cmd.Flags()}
	c.define(f)
	f.BoolVar(&c.keepsFailures, "disable-rollback", false, "Leave what was made when something fails. With this flag, the next pintle stack up "+
		"goes on from there; pintle stack rollback takes it back.")
	return cmd
}

// Run makes or changes a stack.
func (c *stackUpCmd) Run(ctx context.Context) error {
	p, err := c.propose(ctx)
	if err != nil {
		return err
	}
	if p.isEmpty {
		fmt.Println("nothing changes")
		return p.withdraw(ctx)
	}
	f, err := newFollower(ctx, p.client, p.stack)
	if err != nil {
		return err
	}
	in := &cloudformation.ExecuteChangeSetInput{ChangeSetName: &p.id}
	if c.keepsFailures {
		in.DisableRollback = &c.keepsFailures
	}
	if _, err := p.client.ExecuteChangeSet(ctx, in); err != nil {
		return err
	}
	s, err := f.follow(ctx)
	if err != nil || len(s.Outputs) == 0 {
		return err
	}
	fmt.Println()
	w := newTable(outputTitles...)
	writeOutputs(w, s)
	return w.Flush()
}

type stackDiffCmd struct {
	templateFlags
	ExitCode bool
}

func (c *stackDiffCmd) verb() *cobra.Command {
	cmd := newVerb("diff [flags] TEMPLATE", "Show what pintle stack up would change.", argument(&c.Template, "a template"), c.Run)
	f := flags{cmd.Flags()}
	c.define(f)
	f.BoolVar(&c.ExitCode, "exit-code", false, "Exit with 3 if something would change.")
	return cmd
}

// Run shows what would change.
func (c *stackDiffCmd) Run(ctx context.Context) error {
	p, err := c.propose(ctx)
	if err != nil {
		return err
	}
	if err := p.withdraw(ctx); err != nil {
		return err
	}
	if p.isEmpty {
		fmt.Println("nothing changes")
		return nil
	}
	w := newTable("ACTION", "RESOURCE", "TYPE", "ID", "REPLACEMENT", "BECAUSE OF")
	for _, change := range p.changes {
		r := change.ResourceChange
		w.row(r.Action, *r.LogicalResourceId, *r.ResourceType, cmp.Or(aws.ToString(r.PhysicalResourceId), "-"),
			cmp.Or(string(r.Replacement), "-"), cmp.Or(causes(r), "-"))
	}
	if len(p.changes) == 0 {
		w.row("-", "no resource changes, but the template, its outputs or the stack's tags do")
	}
	if err := w.Flush(); err != nil || !c.ExitCode {
		return err
	}
	return exitCode(3)
}

// causes lists the properties for which a resource changes.
func causes(r *types.ResourceChange) string {
	var names []string
	for _, d := range r.Details {
		switch {
		case d.Target == nil || d.ChangeSource == types.ChangeSourceAutomatic:
		case d.Target.Name != nil:
			names = append(names, *d.Target.Name)
		default:
			names = append(names, string(d.Target.Attribute))
		}
	}
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

// proposal is a change set.
type proposal struct {
	client  *cloudformation.Client
	id      string
	stack   string // the stack's ID
	isNew   bool   // whether there was no stack before
	isEmpty bool   // whether nothing changes, outputs and tags included
	changes []types.Change
}

// propose finds out what would change.
func (c *templateFlags) propose(ctx context.Context) (*proposal, error) {
	client, err := c.cloudFormation(ctx)
	if err != nil {
		return nil, err
	}
	return c.proposeTo(ctx, client)
}

// proposeTo is propose for a client, which may be AWS's.
func (c *templateFlags) proposeTo(ctx context.Context, client *cloudformation.Client) (*proposal, error) {
	body, url, err := c.template()
	if err != nil {
		return nil, err
	}
	name := c.Name
	if name == "" {
		name = nameOf(c.Template)
	}
	in := &cloudformation.CreateChangeSetInput{
		StackName:     &name,
		ChangeSetName: aws.String(fmt.Sprintf("pintle-stack-%d", time.Now().UnixNano())),
		ChangeSetType: types.ChangeSetTypeCreate,
		TemplateBody:  body,
		TemplateURL:   url,
		Capabilities:  types.Capability("").Values(),
	}
	old, err := client.DescribeStacks(ctx, &cloudformation.DescribeStacksInput{StackName: &name})
	if err != nil && !isNoStack(err) {
		return nil, err
	}
	isNew := err != nil
	if !isNew {
		if way := wayOut(&old.Stacks[0]); way != "" && !(c.keepsFailures && hasFailed(&old.Stacks[0])) {
			return nil, fmt.Errorf("the stack %s is %s: %s", name, old.Stacks[0].StackStatus, way)
		}
	}
	if !isNew && old.Stacks[0].StackStatus != types.StackStatusReviewInProgress {
		in.ChangeSetType = types.ChangeSetTypeUpdate
		in.Tags = old.Stacks[0].Tags
	}
	if in.Parameters, err = c.parameters(ctx, client, in, old); err != nil {
		return nil, err
	}
	out, err := client.CreateChangeSet(ctx, in)
	if err != nil {
		return nil, err
	}
	p := &proposal{client: client, id: *out.Id, stack: *out.StackId, isNew: isNew}
	return p, p.wait(ctx)
}

// wayOut tells what can be done with a stack that an operation has left as it can't be updated, or only with rollback disabled; "" for others.
func wayOut(s *types.Stack) string {
	name := *s.StackName
	switch s.StackStatus {
	case types.StackStatusRollbackComplete, types.StackStatusRollbackFailed, types.StackStatusDeleteFailed:
		return "it can only be deleted: pintle stack rm " + name
	case types.StackStatusCreateFailed, types.StackStatusUpdateFailed:
		return fmt.Sprintf("what was made stays until\n"+
			"  pintle stack up --disable-rollback --name %[1]s … goes on from there (not if it was created with --on-failure DO_NOTHING),\n"+
			"  pintle stack rollback %[1]s takes back what failed, or\n"+
			"  pintle stack rm %[1]s deletes it", name)
	case types.StackStatusUpdateRollbackFailed:
		return "its rollback goes on by aws cloudformation continue-update-rollback --stack-name " + name
	}
	return ""
}

// hasFailed reports whether a stack is as a failure has left it.
func hasFailed(s *types.Stack) bool {
	return s.StackStatus == types.StackStatusCreateFailed || s.StackStatus == types.StackStatusUpdateFailed
}

// maxBody is how large a template in a call may be, by AWS's quotas.
const maxBody = 51200

// template returns the template's text or its URL.
func (c *templateFlags) template() (body, url *string, err error) {
	if strings.HasPrefix(c.Template, "https://") || strings.HasPrefix(c.Template, "http://") {
		return nil, &c.Template, nil
	}
	b, err := os.ReadFile(c.Template)
	if err != nil {
		return nil, nil, err
	}
	if len(b) > maxBody {
		return nil, nil, fmt.Errorf("%s has %d bytes, more than the %d of a call: put it into a bucket and give its URL", c.Template, len(b), maxBody)
	}
	return aws.String(string(b)), nil, nil
}

var notInStackNames = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// nameOf returns the name of the stack of a template.
func nameOf(template string) string {
	base := filepath.Base(template)
	name := strings.Trim(notInStackNames.ReplaceAllString(strings.TrimSuffix(base, filepath.Ext(base)), "-"), "-")
	if name == "" || name[0] >= '0' && name[0] <= '9' {
		return "stack-" + name
	}
	return name
}

// parameters returns the values of a change set's parameters: those that are set, and for others that the stack has, what it has.
func (c *templateFlags) parameters(
	ctx context.Context, client *cloudformation.Client, in *cloudformation.CreateChangeSetInput, old *cloudformation.DescribeStacksOutput,
) ([]types.Parameter, error) {
	var list []types.Parameter
	for name, value := range c.Set {
		list = append(list, types.Parameter{ParameterKey: &name, ParameterValue: &value})
	}
	if in.ChangeSetType != types.ChangeSetTypeUpdate || len(old.Stacks[0].Parameters) == 0 {
		return list, nil
	}
	summary, err := client.GetTemplateSummary(ctx, &cloudformation.GetTemplateSummaryInput{TemplateBody: in.TemplateBody, TemplateURL: in.TemplateURL})
	if err != nil {
		return nil, err
	}
	for _, p := range summary.Parameters {
		had := slices.ContainsFunc(old.Stacks[0].Parameters, func(o types.Parameter) bool { return *o.ParameterKey == *p.ParameterKey })
		if _, set := c.Set[*p.ParameterKey]; had && !set {
			list = append(list, types.Parameter{ParameterKey: p.ParameterKey, UsePreviousValue: aws.Bool(true)})
		}
	}
	return list, nil
}

// lookAgain is how long is waited before what is under way is looked at again.
const lookAgain = 500 * time.Millisecond

// pause waits before what is under way is looked at again.
func pause(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(lookAgain):
		return nil
	}
}

// wait waits until what would change is known.
func (p *proposal) wait(ctx context.Context) error {
	for {
		out, err := p.client.DescribeChangeSet(ctx, &cloudformation.DescribeChangeSetInput{ChangeSetName: &p.id})
		if err != nil {
			return err
		}
		switch out.Status {
		case types.ChangeSetStatusCreateComplete:
			return p.read(ctx)
		case types.ChangeSetStatusFailed:
			reason := aws.ToString(out.StatusReason)
			if p.isEmpty = saysNoChanges(reason); p.isEmpty {
				return nil
			}
			return errors.Join(changeSetFailed(reason), p.withdraw(ctx))
		}
		if err := pause(ctx); err != nil {
			return err
		}
	}
}

// saysNoChanges reports whether a change set has failed because there is nothing to change.
func saysNoChanges(reason string) bool {
	return strings.Contains(reason, "didn't contain changes") || strings.Contains(reason, "No updates are to be performed")
}

// read reads all changes.
func (p *proposal) read(ctx context.Context) error {
	pages := cloudformation.NewDescribeChangeSetPaginator(p.client, &cloudformation.DescribeChangeSetInput{ChangeSetName: &p.id})
	for pages.HasMorePages() {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		p.changes = append(p.changes, out.Changes...)
	}
	return nil
}

// withdraw deletes the change set, and the stack that is there only for it.
func (p *proposal) withdraw(ctx context.Context) error {
	if p.isNew {
		_, err := p.client.DeleteStack(ctx, &cloudformation.DeleteStackInput{StackName: &p.stack})
		return err
	}
	_, err := p.client.DeleteChangeSet(ctx, &cloudformation.DeleteChangeSetInput{ChangeSetName: &p.id})
	return err
}
