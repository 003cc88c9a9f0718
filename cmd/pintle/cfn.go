package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/cloudformation"
	"github.com/aws/aws-sdk-go-v2/service/cloudformation/types"
	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/bootstrap"
	"github.com/pintle/pintle/internal/cloudformation/cfninit"
)

// calledAs returns the arguments of a program that was started by one of the names that AWS's helper scripts have: cfn-init or cfn-signal.
func calledAs(args []string) []string {
	if name := filepath.Base(args[0]); name == "cfn-init" || name == "cfn-signal" {
		return append([]string{name}, args[1:]...)
	}
	return args[1:]
}

// stackFlags say which resource of which stack an instance is of, under the names that AWS's helper scripts have for them.
type stackFlags struct {
	endpointFlags
	Stack    string
	Resource string
	Region   string
}

// stacks returns whom to ask: the agent that runs the instance's user data, or else CloudFormation.
func (c *stackFlags) stacks(ctx context.Context) (bootstrap.Stacks, error) {
	if socket := os.Getenv(bootstrap.SocketVariable); socket != "" {
		return bootstrap.At(socket), nil
	}
	if c.Region != "" {
		os.Setenv("AWS_REGION", c.Region) //nolint:errcheck // it's a name without zeros
	}
	config, err := awsConfig(c.Endpoint)
	if err != nil {
		return nil, err
	}
	return bootstrap.Direct{Client: cloudformation.NewFromConfig(config)}, nil
}

type cfnInitCmd struct {
	stackFlags
	ConfigSets string
	Verbose    bool
}

func (c *cfnInitCmd) verb() *cobra.Command {
	cmd := newVerb(
		"cfn-init [flags]", "Do on this machine what a stack's metadata AWS::CloudFormation::Init says.", noArguments, c.Run,
	)
	f := flags{cmd.Flags()}
	c.endpointFlags.define(f)
	f.StringVarP(&c.Stack, "stack", "s", "", "The stack's name or ARN.")
	f.StringVarP(&c.Resource, "resource", "r", "", "The logical ID of the resource that has the metadata.")
	f.StringVarP(&c.ConfigSets, "configsets", "c", "", "Config sets, separated by commas; default the set named default, or the config named config.")
	f.StringVar(&c.Region, "region", "", "Region of the stack.")
	f.BoolVarP(&c.Verbose, "verbose", "v", false, "Taken for the sake of scripts: what is done is always said.")
	f.required("stack")
	f.required("resource")
	return cmd
}

// Run does what the metadata say.
func (c *cfnInitCmd) Run(ctx context.Context) error {
	stacks, err := c.stacks(ctx)
	if err != nil {
		return err
	}
	metadata, err := stacks.Metadata(ctx, c.Stack, c.Resource)
	if err != nil {
		return err
	}
	var sets []string
	if c.ConfigSets != "" {
		sets = strings.Split(c.ConfigSets, ",")
	}
	configs, err := cfninit.Select(metadata, sets)
	if err != nil {
		return fmt.Errorf("%s of %s: %w", c.Resource, c.Stack, err)
	}
	for _, config := range configs {
		if err := (bootstrap.Machine{Out: os.Stdout}).Apply(ctx, config); err != nil {
			return err
		}
	}
	return nil
}

type cfnSignalCmd struct {
	stackFlags
	Success  string
	ExitCode int
	Reason   string
	Data     string
	ID       string
	Handle   string
}

func (c *cfnSignalCmd) verb() *cobra.Command {
	cmd := newVerb(
		"cfn-signal [flags] [WAIT-CONDITION-HANDLE]", "Tell a stack that this machine is ready, or that it failed.",
		func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return argument(&c.Handle, "the URL of a wait condition's handle")(cmd, args)
		}, c.Run,
	)
	f := flags{cmd.Flags()}
	c.endpointFlags.define(f)
	f.StringVarP(&c.Success, "success", "s", "", "true or false.")
	f.IntVarP(&c.ExitCode, "exit-code", "e", 0, "Exit code of what was done; 0 is success.")
	f.StringVar(&c.Stack, "stack", "", "The stack's name or ARN.")
	f.StringVar(&c.Resource, "resource", "", "The logical ID of the resource that waits for the signal.")
	f.StringVar(&c.Region, "region", "", "Region of the stack.")
	f.StringVarP(&c.Reason, "reason", "r", "", "Reason, for a wait condition's handle.")
	f.StringVarP(&c.Data, "data", "d", "", "Data, for a wait condition's handle.")
	f.StringVarP(&c.ID, "id", "i", "", "Unique ID of the signal; default the instance's ID, or the machine's name.")
	return checked(cmd, c.check)
}

func (c *cfnSignalCmd) check() error {
	switch {
	case c.Success != "" && c.Success != "true" && c.Success != "false":
		return fmt.Errorf("--success %s is neither true nor false", c.Success)
	case c.Handle == "" && (c.Stack == "" || c.Resource == ""):
		return errors.New("give --stack and --resource, or the URL of a wait condition's handle")
	}
	return nil
}

func (c *cfnSignalCmd) status() types.ResourceSignalStatus {
	if c.Success == "false" || c.ExitCode != 0 {
		return types.ResourceSignalStatusFailure
	}
	return types.ResourceSignalStatusSuccess
}

// Run sends the signal.
func (c *cfnSignalCmd) Run(ctx context.Context) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	id := cmp.Or(c.ID, os.Getenv(bootstrap.InstanceVariable), host)
	if c.Handle != "" {
		return c.signalHandle(ctx, id)
	}
	stacks, err := c.stacks(ctx)
	if err != nil {
		return err
	}
	return stacks.Signal(ctx, c.Stack, c.Resource, id, c.status())
}

// signalHandle sends the signal to the URL of a wait condition's handle, whose signature is all that it needs.
func (c *cfnSignalCmd) signalHandle(ctx context.Context, id string) error {
	body, err := json.Marshal(map[string]string{"Status": string(c.status()), "Reason": c.Reason, "UniqueId": id, "Data": c.Data})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPut, c.Handle, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	answer.Body.Close() //nolint:errcheck // only the status counts
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("the wait condition's handle answers %s", answer.Status)
	}
	return nil
}
