package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/aws/smithy-go"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/cloudformation/schema"
	"github.com/pintle/pintle/internal/cloudformation/template"
)

type compareCmd struct {
	templateFlags
	Profile     string
	Region      string
	AWSEndpoint string
	Schemas     string
	ExitCode    bool
}

func (c *compareCmd) define(f flags) {
	c.templateFlags.define(f)
	f.StringVar(&c.Profile, "aws-profile", "", "A profile of the AWS CLI: with its credentials a change set is made on AWS, and deleted again.")
	f.StringVar(&c.Region, "aws-region", "", "AWS's region; default the environment's, or us-east-1.")
	f.StringVar(&c.AWSEndpoint, "aws-endpoint", "", "What to call in place of AWS.")
	f.StringVar(&c.Schemas, "schemas", "", "CloudFormation's schemas of resource types, as a zip file or a folder of JSON files.")
	f.BoolVar(&c.ExitCode, "exit-code", false, "Exit with 3 if something differs.")
}

func (c *compareCmd) verb() *cobra.Command {
	cmd := newVerb("compare [flags] TEMPLATE", "Say what AWS would do otherwise with a CloudFormation template than Pintle.",
		argument(&c.Template, "a template"), c.Run)
	cmd.Long = "Nothing is made on either side. With --aws-profile both plan the template, as a change set that isn't executed, and the plans are " +
		"compared; the AWS CLI gives the credentials, and while they plan AWS has a stack in REVIEW_IN_PROGRESS. With --schemas no credentials " +
		"are needed: the template is checked against what CloudFormation publishes for a region, at\n" +
		"https://schema.cloudformation.us-east-1.amazonaws.com/CloudformationSchema.zip"
	c.define(flags{cmd.Flags()})
	return checked(cmd, c.Validate)
}

// Validate checks that there is something to compare with.
func (c *compareCmd) Validate() error {
	if c.Profile == "" && c.AWSEndpoint == "" && c.Schemas == "" {
		return errors.New("give --aws-profile or --schemas, or both: see --help")
	}
	return nil
}

// difference is what AWS and Pintle don't do alike with a resource, or with the template where it has no name.
type difference struct{ Resource, AWS, Pintle string }

// Run shows what differs.
func (c *compareCmd) Run(ctx context.Context) error {
	here, err := c.cloudFormation(ctx)
	if err != nil {
		return err
	}
	ours, err := c.planned(ctx, here)
	if err != nil {
		return err
	}
	var found []difference
	if c.Schemas != "" {
		if found, err = c.checked(ours); err != nil {
			return err
		}
	}
	if c.Profile != "" || c.AWSEndpoint != "" {
		there, err := c.aws(ctx)
		if err != nil {
			return err
		}
		theirs, err := c.planned(ctx, there)
		if err != nil {
			return err
		}
		found = append(found, differences(theirs, ours)...)
	}
	if len(found) == 0 {
		fmt.Println("nothing differs")
		return nil
	}
	w := newTable("RESOURCE", "AWS", "PINTLE")
	for _, d := range found {
		w.row(cmp.Or(d.Resource, "-"), cmp.Or(d.AWS, "-"), cmp.Or(d.Pintle, "-"))
	}
	if err := w.Flush(); err != nil || !c.ExitCode {
		return err
	}
	return exitCode(3)
}

// aws returns a client for AWS, or what is called in its place. What points other calls at Pintle has no say in it.
func (c *compareCmd) aws(ctx context.Context) (*cloudformation.Client, error) {
	l := login{Endpoint: c.AWSEndpoint, Region: cmp.Or(c.Region, regionHere("us-east-1"))}
	if c.Profile != "" {
		key, err := keyOfProfile(ctx, c.Profile)
		if err != nil {
			return nil, err
		}
		l.AccessKeyID, l.SecretAccessKey, l.SessionToken = key.AccessKeyID, key.SecretAccessKey, key.SessionToken
	}
	config, err := configOf(l)
	if err != nil {
		return nil, err
	}
	return cloudformation.NewFromConfig(config), nil
}

// profileKey is the credentials of a profile, as the AWS CLI exports them.
type profileKey struct{ AccessKeyID, SecretAccessKey, SessionToken string }

// keyOfProfile asks the AWS CLI for a profile's credentials. Version 1 exports none; it tells of those that stand in its files.
func keyOfProfile(ctx context.Context, profile string) (key profileKey, err error) {
	out, err := exec.CommandContext(ctx, "aws", "configure", "export-credentials", "--profile", profile, "--format", "process").Output()
	exit := new(exec.ExitError)
	switch {
	case errors.As(err, &exit) && strings.Contains(string(exit.Stderr), "Invalid choice"):
		return keyInFiles(ctx, profile)
	case errors.As(err, &exit):
		return key, fmt.Errorf("aws configure export-credentials --profile %s: %s", profile, strings.TrimSpace(string(exit.Stderr)))
	case err != nil:
		return key, fmt.Errorf("--aws-profile needs the AWS CLI: %w", err)
	}
	if err := json.Unmarshal(out, &key); err != nil {
		return key, fmt.Errorf("the AWS CLI's credentials: %w", err)
	}
	return key, nil
}

func keyInFiles(ctx context.Context, profile string) (key profileKey, err error) {
	for name, value := range map[string]*string{
		"aws_access_key_id": &key.AccessKeyID, "aws_secret_access_key": &key.SecretAccessKey, "aws_session_token": &key.SessionToken,
	} {
		out, _ := exec.CommandContext(ctx, "aws", "configure", "get", name, "--profile", profile).Output() // it fails where there is none
		*value = strings.TrimSpace(string(out))
	}
	if key.AccessKeyID == "" || key.SecretAccessKey == "" {
		return key, fmt.Errorf("the profile %s has no access key in the AWS CLI's files, and of others version 1 of the CLI exports none: "+
			"use version 2, or put the profile's credentials into another one", profile)
	}
	return key, nil
}

// planOrRefusal is what one side would do with a template, by the resources' logical IDs, or why it would do nothing.
type planOrRefusal struct {
	changes map[string]string
	refusal string
}

// planned asks one side what it would do.
func (c *compareCmd) planned(ctx context.Context, client *cloudformation.Client) (planOrRefusal, error) {
	p, err := c.proposeTo(ctx, client)
	if refusal := refused(err); refusal != "" {
		return planOrRefusal{refusal: refusal}, nil
	}
	if err != nil {
		return planOrRefusal{}, err
	}
	plan := planOrRefusal{changes: map[string]string{}}
	for _, change := range p.changes {
		plan.changes[*change.ResourceChange.LogicalResourceId] = changeInWords(change.ResourceChange)
	}
	return plan, p.withdraw(ctx)
}

// changeInWords says what is done with a resource.
func changeInWords(r *types.ResourceChange) string {
	words := string(r.Action) + " " + *r.ResourceType
	if r.Replacement != "" && r.Replacement != types.ReplacementFalse {
		words += ", replacement " + string(r.Replacement)
	}
	if because := causes(r); because != "" {
		words += ", because of " + because
	}
	return words
}

// refused returns why a template isn't carried out; "" if another error has nothing to do with the template.
func refused(err error) string {
	var failed changeSetFailed
	if errors.As(err, &failed) {
		return string(failed)
	}
	var api smithy.APIError
	if errors.As(err, &api) && api.ErrorCode() == "ValidationError" {
		return api.ErrorMessage()
	}
	return ""
}

// checked compares Pintle's plan with what the published schemas say of the template.
func (c *compareCmd) checked(ours planOrRefusal) ([]difference, error) {
	text, err := os.ReadFile(c.Template)
	if err != nil {
		return nil, fmt.Errorf("with --schemas the template must be a file: %w", err)
	}
	schemas, err := schema.Open(c.Schemas)
	if err != nil {
		return nil, fmt.Errorf("--schemas: %w", err)
	}
	t, err := template.Parse(text)
	if err != nil {
		return nil, err
	}
	var found []difference
	if ours.refusal != "" {
		found = append(found, difference{Pintle: "refused: " + ours.refusal})
	}
	for i := range t.Resources {
		for _, problem := range schemas.Check(&t.Resources[i]) {
			found = append(found, difference{Resource: t.Resources[i].Name, AWS: problem})
		}
	}
	return found, nil
}

// differences compares two plans. A template that neither side takes is no good, so it's shown too.
func differences(theirs, ours planOrRefusal) []difference {
	if theirs.refusal != "" || ours.refusal != "" {
		d := difference{AWS: "takes it", Pintle: "takes it"}
		if theirs.refusal != "" {
			d.AWS = "refused: " + theirs.refusal
		}
		if ours.refusal != "" {
			d.Pintle = "refused: " + ours.refusal
		}
		return []difference{d}
	}
	var found []difference
	for name, their := range theirs.changes {
		if our := ours.changes[name]; our != their {
			found = append(found, difference{name, their, our})
		}
	}
	for name, our := range ours.changes {
		if theirs.changes[name] == "" {
			found = append(found, difference{Resource: name, Pintle: our})
		}
	}
	slices.SortFunc(found, func(a, b difference) int { return strings.Compare(a.Resource, b.Resource) })
	return found
}

// changeSetFailed is why a change set can't be made of a template.
type changeSetFailed string

func (e changeSetFailed) Error() string { return string(e) }
