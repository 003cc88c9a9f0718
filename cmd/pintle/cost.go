package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/console/costs"
)

type costCmd struct {
	endpointFlags
	JSON bool
}

func (c *costCmd) define(f flags) {
	c.endpointFlags.define(f)
	f.BoolVar(&c.JSON, "json", false, "All that is known, as JSON.")
}

const costHelp = `The control plane counts its machines and knows prices by --prices FILE; sums are in the list's currency. Days and months are UTC's.
Saved is the difference to as many machines of each type, all the time, as there were at the busiest moment. GPU-hours are held while a task has the
GPU, whether it computes or not. It takes the permissions cloudwatch:ListMetrics and cloudwatch:GetMetricData.`

func (c *costCmd) verb() *cobra.Command {
	const short = "Say what the machines cost: now, today and this month, what scaling saved, and how much of the GPUs tasks held."
	cmd := newVerb("cost [flags]", short, noArguments, c.Run)
	cmd.Long = costHelp
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run asks the control plane, and prints what the console's Money page shows.
func (c *costCmd) Run(ctx context.Context) error {
	if c.Endpoint == "" {
		return errors.New("only Pintle knows what its machines cost: give its --endpoint")
	}
	b, err := c.call(ctx, http.MethodGet, costs.Path, nil)
	if err != nil {
		return err
	}
	if c.JSON {
		_, err := plainWriter{os.Stdout}.Write(b)
		return err
	}
	var r costs.Report
	if err := json.Unmarshal(b, &r); err != nil {
		return err
	}
	return printCosts(r)
}

func printCosts(r costs.Report) error {
	w := newTable("WHEN", "TYPE", "MACHINES", "HOURS", "PRICE", "COST", "AT THE PEAK")
	for _, m := range r.Now.Machines {
		price, cost := "-", "-"
		if m.Price != nil {
			price, cost = money(*m.Price), money(m.Cost)+"/h"
		}
		w.row("now", m.Type, m.Count, "-", price, cost, "-")
	}
	times := []struct {
		name string
		costs.Time
	}{{"today", r.Today}, {"month", r.Month}}
	for _, t := range times {
		for _, i := range t.Items {
			price, cost, peak := money(i.Price), money(i.Cost), money(i.AtPeak)
			if slices.Contains(t.Unpriced, i.Type) {
				price, cost, peak = "-", "-", "-"
			}
			w.row(t.name, i.Type, fmt.Sprintf("%.0f at most", i.Most), money(i.Hours), price, cost, peak)
		}
	}
	fmt.Fprintf(w, "\nnow    %s an hour\n", money(r.Now.Cost))
	for _, t := range times {
		if len(t.Items) == 0 {
			fmt.Fprintf(w, "%s  nothing was counted yet\n", t.name)
			continue
		}
		fmt.Fprintf(w, "%s  %s, %s saved by scaling; tasks held %s of %s GPU-hours%s; counted since %s\n",
			t.name, money(t.Cost), money(t.Saved), money(t.GPUHoursHeld), money(t.GPUHours), share(t.GPUHoursHeld, t.GPUHours), t.Since.Format(time.RFC3339))
	}
	switch {
	case !r.Priced:
		fmt.Fprintln(w, "There are no prices: the control plane was started without --prices FILE.")
	case len(r.Month.Unpriced) > 0:
		fmt.Fprintln(w, plain("The list of prices doesn't have "+strings.Join(r.Month.Unpriced, ", ")+".", ""))
	}
	return w.Flush()
}

func money(sum float64) string { return strconv.FormatFloat(sum, 'f', 2, 64) }

// share is a part of a whole, for people.
func share(part, whole float64) string {
	if whole == 0 {
		return ""
	}
	return fmt.Sprintf(" (%.0f %%)", 100*part/whole)
}
