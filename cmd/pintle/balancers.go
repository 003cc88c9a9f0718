package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/elb/report"
)

type balancersCmd struct {
	endpointFlags
}

func (c *balancersCmd) verb() *cobra.Command {
	cmd := newVerb("balancers [flags]", "List load balancers' listeners, and where they are.", noArguments, c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run lists the listeners.
func (c *balancersCmd) Run(ctx context.Context) error {
	b, err := c.call(ctx, http.MethodPost, report.ListPath, []byte("{}"))
	if err != nil {
		return err
	}
	var all []report.Listener
	if err := json.Unmarshal(b, &all); err != nil {
		return err
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "LOAD BALANCER\tLISTENER\tADDRESS\tNAME\tPROCESS")
	for _, l := range all {
		where := l.Address
		if l.Problem != "" {
			where = "- (" + l.Problem + ")"
		}
		fmt.Fprintf(w, "%s\t%s:%d\t%s\t%s\t%s\n", l.LoadBalancer, l.Protocol, l.Port, where, l.URL, l.Process)
	}
	return w.Flush()
}
