package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pintle/pintle/internal/console"
	"github.com/pintle/pintle/internal/ecs/why"
)

type whyCmd struct {
	clientFlags
	Name string
	JSON bool
}

func (c *whyCmd) define(f flags) {
	c.clientFlags.define(f)
	f.BoolVar(&c.JSON, "json", false, "All that is known, as JSON.")
}

func (c *whyCmd) verb() *cobra.Command {
	const short = "Say why a task or a service isn't where it should be: what it wants, what comes closest, what it waits for."
	cmd := newVerb("why [flags] TASK|SERVICE", short, argument(&c.Name, "a task's id, or a service's name"), c.Run)
	c.define(flags{cmd.Flags()})
	return cmd
}

// Run asks the control plane.
func (c *whyCmd) Run(ctx context.Context) error {
	b, err := c.ask(ctx, c.Name)
	if err != nil {
		return err
	}
	out := plainWriter{os.Stdout}
	if c.JSON {
		_, err := out.Write(b)
		return err
	}
	var a console.WhyAnswer
	if err := json.Unmarshal(b, &a); err != nil {
		return err
	}
	_, err = fmt.Fprint(out, inWords(a))
	return err
}

// ask asks why a task or a service isn't where it should be, and returns a console.WhyAnswer as JSON.
func (c clientFlags) ask(ctx context.Context, name string) ([]byte, error) {
	if c.Endpoint == "" {
		return nil, errors.New("only Pintle says why: give its --endpoint")
	}
	body, err := json.Marshal(console.Why{Cluster: c.Cluster, Name: name})
	if err != nil {
		return nil, err
	}
	return c.call(ctx, http.MethodPost, "/pintle/why", body)
}

// inWords is an answer as it's printed.
func inWords(a console.WhyAnswer) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s is %s. %s\n", a.Subject, a.Status, a.Why)
	if a.Wants != nil {
		fmt.Fprintf(&b, "  wants:     %s\n", inWordsWants(*a.Wants))
	}
	for i, at := range a.Closest {
		label := "           "
		if i == 0 {
			label = "closest:   "
		}
		fmt.Fprintf(&b, "  %s%s\n", label, at.String())
	}
	if a.WaitsFor != "" {
		fmt.Fprintf(&b, "  waits for: %s\n", a.WaitsFor)
	}
	if a.Change != "" {
		fmt.Fprintf(&b, "  to do:     %s\n", a.Change)
	}
	return b.String()
}

func inWordsWants(w why.Wants) string {
	var said []string
	if w.CPU > 0 {
		said = append(said, fmt.Sprintf("%d CPU units", w.CPU))
	}
	if w.MemoryMiB > 0 {
		said = append(said, fmt.Sprintf("%d MiB of memory", w.MemoryMiB))
	}
	if w.GPUs > 0 {
		said = append(said, counted(w.GPUs, "GPU"))
	}
	if w.Ports != nil {
		said = append(said, "port "+strings.Join(w.Ports, ", "))
	}
	if w.Provider != "" {
		said = append(said, "the capacity provider "+w.Provider)
	}
	return strings.Join(append(said, w.Constraints...), "; ")
}
